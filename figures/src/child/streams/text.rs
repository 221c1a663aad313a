//! The texts that the pipelines read, made by a fixed recipe, and the output that is right.
//!
//! The recipe says also what a plain loop over the lines makes of the text: every program has to
//! give these bytes.
//!
//! The programs in `bytes.rs` and the figures in `figures/src/streams/bytes.rs` share it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// What one line in ten thousand has, or nearly so.
pub(crate) const RARE: &str = "FIND ME";
/// It stands for the input within a word of a tool.
pub(crate) const INPUT: &str = "{input}";
/// What one line in eight has.
pub(crate) const FREQUENT: &str = "warp";
/// What takes the place of either.
pub(crate) const INSTEAD: &str = "selvedge";

/// The letters of the words. `FREQUENT` cannot be made of them.
const LETTERS: &[u8; 16] = b"etaoinshdlucmfyb";

/// A directory that is removed with this value, and the files of a figure in it.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// Makes it.
    ///
    /// # Errors
    /// When the temporary directory cannot be written.
    pub(crate) fn new(figure: &str) -> Result<Home, String> {
        let path = std::env::temp_dir().join(format!("{figure}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Home(path))
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }
}

/// What has been written, as far as an answer tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// How many bytes.
    pub(crate) bytes: u64,
    /// A sum that depends on each byte and on its place.
    sum: u64,
}

impl Written {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.sum = self.sum.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte);
        }
        self.bytes += bytes.len() as u64;
    }

    /// The sum, as a number that every report can hold.
    pub(crate) fn sum(self) -> u64 {
        self.sum >> 16
    }

    /// What is in a file.
    pub(crate) fn of_file(path: &str) -> io::Result<Written> {
        let (mut file, mut written) = (File::open(path)?, Written::default());
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block)? {
                0 => return Ok(written),
                length => written.add(&block[..length]),
            }
        }
    }
}

/// What is right for a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// Lines.
    pub(crate) lines: u64,
    /// Lines that have `RARE`.
    pub(crate) rare: u64,
    /// Lines that begin with `e`.
    pub(crate) begin: u64,
    /// What `grep RARE` prints, and `grep -n RARE`.
    pub(crate) found: [Written; 2],
    /// The text with `INSTEAD` in the place of `RARE`, and in the place of `FREQUENT`.
    pub(crate) changed: [Written; 2],
}

/// Writes lines of words, 90 bytes long in the mean, and some of them blank.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_lines(path: &Path, bytes: u64) -> io::Result<Facts> {
    let (mut file, mut dice) = (BufWriter::new(File::create(path)?), Dice(1));
    let (mut line, mut facts, mut made) = (Vec::new(), Facts::default(), 0);
    while made < bytes {
        line.clear();
        facts.lines += 1;
        let length = if facts.lines % 61 == 0 { 0 } else { 40 + dice.roll() as usize % 97 };
        while line.len() < length {
            let (word, letters) = (dice.roll(), 2 + dice.roll() % 8);
            line.extend((0..letters).map(|at| LETTERS[(word >> (4 * at) & 15) as usize]));
            line.push(b' ');
        }
        let put = match facts.lines {
            n if n % 9731 == 7 => RARE,
            n if n % 8 == 3 => FREQUENT,
            _ => "",
        };
        let at = line.iter().position(|byte| *byte == b' ').map_or(0, |at| at + 1);
        line.splice(at..at, put.bytes());
        line.push(b'\n');
        facts.begin += u64::from(line[0] == b'e');
        if put == RARE {
            facts.rare += 1;
            facts.found[0].add(&line);
            facts.found[1].add(format!("{}:", facts.lines).as_bytes());
            facts.found[1].add(&line);
        }
        for (changed, name) in facts.changed.iter_mut().zip([RARE, FREQUENT]) {
            let gone = if put == name { at + put.len() } else { at };
            changed.add(&line[..at]);
            changed.add(if put == name { INSTEAD.as_bytes() } else { b"" });
            changed.add(&line[gone..]);
        }
        file.write_all(&line)?;
        made += line.len() as u64;
    }
    file.flush()?;
    Ok(facts)
}

/// Writes a document of XML, and returns how many elements have the attribute `ply`.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_document(path: &Path, bytes: u64) -> io::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let (mut made, mut n, mut plied) = (0, 0u64, 0);
    file.write_all(b"<?xml version=\"1.0\"?>\n<cloth>\n")?;
    while made < bytes {
        n += 1;
        let text = match n % 4 {
            0 => format!(
                "  <thread color='red' ply=\"{}\" id=\"t{n}\">warp and weft &amp; {n}</thread>\n",
                n % 9
            ),
            1 => format!("  <pick id=\"p{n}\"><pass>{}</pass></pick>\n", n * 7),
            2 => format!("  <knot at=\"{}\" note=\"a > b\" ply=\"2\"/>\n", n * 3),
            _ => format!("  <!-- <row ply=\"{n}\"> --><row>over under over under</row>\n"),
        };
        plied += u64::from(n % 2 == 0);
        made += text.len() as u64;
        file.write_all(text.as_bytes())?;
    }
    file.write_all(b"</cloth>\n")?;
    file.flush()?;
    Ok(plied)
}

/// Writes numbers in no order, one in a line, and returns what they are in order.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_numbers(path: &Path, count: u64) -> io::Result<Written> {
    let (mut file, mut dice, mut sorted) = (BufWriter::new(File::create(path)?), Dice(7), Written::default());
    let mut numbers: Vec<u32> = (0..count).map(|_| dice.roll() as u32).collect();
    for number in &numbers {
        writeln!(file, "{number}")?;
    }
    numbers.sort_unstable();
    for number in &numbers {
        sorted.add(format!("{number}\n").as_bytes());
    }
    file.flush()?;
    Ok(sorted)
}

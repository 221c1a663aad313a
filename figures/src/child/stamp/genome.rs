//! genome: rebuilds a gene from overlapping segments of it. The segments are put into a set, which
//! drops duplicates. Then each segment is linked with one that begins as the segment ends; the
//! longest overlap comes first. Then the chain of the links is followed.
//!
//! `child.rs` calls `genome`, and `figures/src/stamp.rs` gives the numbers. The answers are the
//! length and a checksum of the gene, which the order of the threads does not change.

use super::numbers::{EXACT, Random, mixed};
use super::threads::{timed, together};
use crate::child::fault;
use selvedge_stm::{TWordArray, Tried, Tx, atomically};
use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// The size of a run, as the options of STAMP have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    /// `-g`: the nucleotides of the gene.
    pub(crate) gene: u64,
    /// `-s`: the nucleotides of a segment, at most 31.
    pub(crate) segment: u64,
    /// `-n`: the number of segments.
    pub(crate) segments: u64,
}

/// The number of segments that one transaction puts into the set.
const CHUNK: u64 = 12;

/// The nucleotides of the gene, each a number below 4.
fn gene(sequence: &Sequence) -> (Vec<u8>, Random) {
    let mut random = Random::new(0);
    let gene = (0..sequence.gene).map(|_| random.below(4) as u8).collect();
    (gene, random)
}

/// The segments, with two bits a nucleotide, the first nucleotide highest. One begins at least
/// every half of a segment, so that neighbours overlap.
fn segments(sequence: &Sequence) -> Vec<u64> {
    let (gene, mut random) = gene(sequence);
    let last = sequence.gene - sequence.segment;
    let random = (0..sequence.segments).map(|_| random.below(last + 1)).collect::<Vec<_>>();
    let regular = (0..last).step_by(sequence.segment as usize / 2).chain([last]);
    let segment = |start: u64| {
        let part = &gene[start as usize..(start + sequence.segment) as usize];
        part.iter().fold(0, |segment, &nucleotide| segment << 2 | u64::from(nucleotide))
    };
    random.into_iter().chain(regular).map(segment).collect()
}

/// The checksum of a gene.
fn checksum(gene: impl Iterator<Item = u8>) -> u64 {
    gene.fold(0, |sum, nucleotide| mixed(sum, u64::from(nucleotide) + 1)) & EXACT
}

/// The checksum that a run must print.
pub(crate) fn expected(sequence: &Sequence) -> u64 {
    checksum(gene(sequence).0.into_iter())
}

/// The word of a free place in a hash table.
const FREE: u64 = u64::MAX;

/// A hash table with a variable for each place, twice as many as words are expected.
struct WordTable(TWordArray<u64>);

impl WordTable {
    fn new(expected: u64) -> WordTable {
        let places = (2 * expected).next_power_of_two() as usize;
        WordTable(TWordArray::new(iter::repeat_n(FREE, places)))
    }

    /// The places to look at for a key, in their order.
    fn places(&self, key: u64) -> impl Iterator<Item = usize> {
        let last = self.0.len() - 1;
        let first = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.0.len().ilog2());
        (first as usize..).map(move |place| place & last)
    }

    /// Adds a word, unless it is there.
    fn insert(&self, tx: &Tx, key: u64, word: u64) -> Tried<()> {
        for place in self.places(key) {
            match self.0.read(tx, place)? {
                FREE => {
                    self.0.write(tx, place, word);
                    break;
                }
                there if there == word => break,
                _ => {}
            }
        }
        Ok(())
    }
}

/// No segment.
const NONE: u64 = u64::MAX;

/// What is known of a segment in the chains. A chain is known to its ends.
#[derive(Clone, Copy)]
enum Known {
    /// Whether no other segment leads to this one.
    IsHead,
    /// The number of the segment that follows, shifted by 8, and their overlap.
    Next,
    /// Of a tail, the head of its chain.
    Head,
    /// Of a head, the tail of its chain.
    Tail,
}

const KNOWN: usize = 4;

/// The chains of the segments.
struct Chains {
    length: u64,
    segments: Vec<u64>,
    /// Of each segment, what is `Known`.
    known: TWordArray<u64>,
}

impl Chains {
    fn new(length: u64, segments: Vec<u64>) -> Chains {
        let known = TWordArray::new((0..segments.len() as u64).flat_map(|at| [1, NONE, at, at]));
        Chains { length, segments, known }
    }

    fn place(number: u64, known: Known) -> usize {
        number as usize * KNOWN + known as usize
    }

    fn read(&self, tx: &Tx, number: u64, known: Known) -> Tried<u64> {
        self.known.read(tx, Chains::place(number, known))
    }

    fn write(&self, tx: &Tx, number: u64, known: Known, word: u64) {
        self.known.write(tx, Chains::place(number, known), word);
    }

    fn now(&self, number: u64, known: Known) -> u64 {
        self.known.read_now(Chains::place(number, known))
    }

    fn is_head_now(&self, number: u64) -> bool {
        self.now(number, Known::IsHead) != 0
    }

    fn begin(&self, segment: u64, overlap: u64) -> u64 {
        segment >> (2 * (self.length - overlap))
    }

    fn end(segment: u64, overlap: u64) -> u64 {
        segment & ((1 << (2 * overlap)) - 1)
    }

    /// Links a tail with a head that begins as it ends. Whether there was one.
    fn link(&self, tx: &Tx, begins: &WordTable, number: u64, overlap: u64) -> Tried<bool> {
        let end = Chains::end(self.segments[number as usize], overlap);
        for place in begins.places(end) {
            let found = begins.0.read(tx, place)?;
            if found == FREE {
                break;
            }
            let begin = self.begin(self.segments[found as usize], overlap);
            if begin != end || self.read(tx, found, Known::IsHead)? == 0 {
                continue;
            }
            let head = self.read(tx, number, Known::Head)?;
            if head == found {
                // It would be a ring.
                continue;
            }
            let tail = self.read(tx, found, Known::Tail)?;
            self.write(tx, number, Known::Next, found << 8 | overlap);
            self.write(tx, found, Known::IsHead, 0);
            self.write(tx, head, Known::Tail, tail);
            self.write(tx, tail, Known::Head, head);
            return Ok(true);
        }
        Ok(false)
    }

    /// The nucleotides of the chains, one after the other.
    fn rebuilt(&self) -> Vec<u8> {
        let mut gene = Vec::new();
        for first in (0..self.segments.len() as u64).filter(|&number| self.is_head_now(number)) {
            let (mut number, mut overlap) = (first, 0);
            loop {
                let nucleotides = (0..self.length - overlap).rev();
                let segment = self.segments[number as usize];
                gene.extend(nucleotides.map(|place| (segment >> (2 * place) & 3) as u8));
                let next = self.now(number, Known::Next);
                if next == NONE {
                    break;
                }
                (number, overlap) = (next >> 8, next & 0xff);
            }
        }
        gene
    }
}

/// The part of this number of things that falls to one of the threads.
fn part(things: usize, thread: u64, threads: u64) -> Range<usize> {
    let bound = |thread| things * thread as usize / threads as usize;
    bound(thread)..bound(thread + 1)
}

/// Rebuilds a gene in this number of threads.
async fn rebuild(threads: u64, length: u64, segments: Arc<Vec<u64>>, set: Arc<WordTable>) -> Vec<u8> {
    together(threads, |thread| {
        let (segments, set) = (segments.clone(), set.clone());
        async move {
            for chunk in segments[part(segments.len(), thread, threads)].chunks(CHUNK as usize) {
                atomically(|tx| chunk.iter().try_for_each(|&segment| set.insert(tx, segment, segment))).await;
            }
        }
    })
    .await;
    let unique = set.0.iter_now().filter(|&word| word != FREE).collect();
    let chains = Arc::new(Chains::new(length, unique));
    let count = chains.segments.len();
    let all = |thread| part(count, thread, threads).map(|number| number as u64).collect();
    // The heads and the tails among the entries of each thread.
    let mut heads: Vec<Vec<u64>> = (0..threads).map(all).collect();
    let mut tails = heads.clone();
    for overlap in (1..length).rev() {
        let begins = Arc::new(WordTable::new(heads.iter().map(Vec::len).sum::<usize>() as u64));
        heads = together(threads, |thread| {
            let (chains, begins) = (chains.clone(), begins.clone());
            let mut heads = mem::take(&mut heads[thread as usize]);
            async move {
                heads.retain(|&number| chains.is_head_now(number));
                for &number in &heads {
                    let begin = chains.begin(chains.segments[number as usize], overlap);
                    atomically(|tx| begins.insert(tx, begin, number)).await;
                }
                heads
            }
        })
        .await;
        tails = together(threads, |thread| {
            let (chains, begins) = (chains.clone(), begins.clone());
            let numbers = mem::take(&mut tails[thread as usize]);
            async move {
                let mut left = Vec::new();
                for number in numbers {
                    if !atomically(|tx| chains.link(tx, &begins, number, overlap)).await {
                        left.push(number);
                    }
                }
                left
            }
        })
        .await;
    }
    chains.rebuilt()
}

/// Threads that rebuild a gene.
pub(in crate::child) fn genome(threads: u64, sequence: Sequence) {
    let segments = Arc::new(segments(&sequence));
    let set = Arc::new(WordTable::new(sequence.gene));
    let mut gene = timed(threads, rebuild(threads, sequence.segment, segments, set));
    // A run that is to be wrong has another nucleotide.
    gene[0] ^= fault() as u8;
    println!("length {}", gene.len());
    println!("checksum {}", checksum(gene.into_iter()));
}

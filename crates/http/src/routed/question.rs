//! What a route asks on the blocking pool: [`Question`], and what is [`Learned`] there.

use super::compress::compress;
use crate::cache::CachedFile;
use crate::document_root::{Backing, DocumentRoot, Found, Identity, LookUpError, Patience};
use crate::files::{self, LookedUp};
use crate::routing::Routing;
use crate::status::Status;
use selvedge_core::Time;
use selvedge_io::fs::Handle;
use selvedge_io::pool::{Limits, Pool};
use selvedge_site::accept::Coding;
use selvedge_site::listing::ListedEntry;
use selvedge_site::password::Users;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::sync::{Arc, LazyLock};

/// Verifies passwords for all workers, two at a time. Each takes a processor for tens of
/// milliseconds, so a client that guesses keeps no other blocking call waiting.
pub(super) static PASSWORDS: LazyLock<Pool> =
    LazyLock::new(|| Pool::new(Limits { threads_max: NonZeroUsize::new(2).unwrap(), ..Limits::default() }));

/// A question about one request, with what was learned for it before.
pub(crate) struct AskedQuestion {
    /// The routes by which it is asked. What is learned means nothing to other ones.
    pub(super) routing: Arc<Routing>,
    pub(super) began: Time,
    pub(super) learned: Vec<Learned>,
    pub(super) question: Question,
}

/// All that was learned for one request.
pub(crate) struct LearnedFacts {
    pub(super) routing: Arc<Routing>,
    pub(super) began: Time,
    pub(super) learned: Vec<Learned>,
}

/// A call that may block.
pub(crate) enum Question {
    /// Which of these names is a file of the directory number `at`. The look-up ends with the first
    /// that is one.
    Names { at: usize, directory: DocumentRoot, memory_bytes: u64, keys: Vec<Vec<u8>> },
    /// What a directory contains; with `shows` unset, only whether it is there.
    List { directory: DocumentRoot, name: Vec<u8>, shows: bool },
    /// Whether a password is right.
    Verify { users: Users, name: String, password: Vec<u8> },
    /// A file's content in this coding.
    Compress { content: UnpackedFile, identity: Identity, coding: Coding },
}

/// The content of a file that is to be compressed.
pub(crate) enum UnpackedFile {
    Memory(Box<[u8]>),
    Open(Handle),
}

/// The answer to a question.
pub(crate) enum Learned {
    /// The result for each name that was looked up in the directory with this number.
    Names(usize, Vec<LookedUp>),
    /// The names of a directory.
    Listed(Result<Vec<ListedEntry>, Status>),
    /// Whether the password is right.
    Verified(bool),
    /// The content; `None` if the file changed meanwhile, or does not get shorter.
    Compressed(Identity, Option<Box<[u8]>>),
}

impl AskedQuestion {
    /// The pool on which it is answered, if it has one of its own.
    pub(crate) fn pool(&self) -> Option<&'static Pool> {
        matches!(self.question, Question::Verify { .. }).then(|| &*PASSWORDS)
    }

    /// Answers the question. The call blocks.
    pub(crate) fn answer(self) -> LearnedFacts {
        let AskedQuestion { routing, began, mut learned, question } = self;
        learned.push(question.answer());
        LearnedFacts { routing, began, learned }
    }
}

impl Question {
    /// Asks for `file` in `coding`; `None` if the process has no descriptor left.
    pub(super) fn compress(file: &CachedFile, coding: Coding) -> Option<Question> {
        let content = match &file.body {
            Backing::Memory(content) => UnpackedFile::Memory(content.clone()),
            Backing::Open(open) => UnpackedFile::Open(open.duplicate().ok()?),
        };
        Some(Question::Compress { content, identity: file.identity, coding })
    }

    fn answer(self) -> Learned {
        match self {
            Question::Names { at, directory, memory_bytes, keys } => {
                let mut found = Vec::new();
                for key in keys {
                    let result = files::search(&directory, &key, memory_bytes);
                    // `Routed` goes on to the next name after every other result, and needs the
                    // result for that name too.
                    let is_end = matches!(result, Ok(Found::File(_)));
                    found.push((key, result));
                    if is_end {
                        break;
                    }
                }
                Learned::Names(at, found)
            }
            Question::List { directory, name, shows } => Learned::Listed(list(&directory, &name, shows)),
            Question::Verify { users, name, password } => Learned::Verified(users.verify(&name, &password)),
            Question::Compress { content, identity, coding } => {
                let read = match content {
                    UnpackedFile::Memory(content) => Some(content),
                    UnpackedFile::Open(file) => read(&file, identity),
                };
                let len = identity.len as usize;
                let packed = read.and_then(|content| compress(&content, coding));
                Learned::Compressed(identity, packed.filter(|packed| packed.len() < len))
            }
        }
    }
}

/// The content of a file that has stood still.
fn read(file: &Handle, identity: Identity) -> Option<Box<[u8]>> {
    let mut content = vec![0; identity.len as usize].into_boxed_slice();
    let mut at = 0;
    while at < content.len() {
        match file.read_at(&mut content[at..], at as u64) {
            Ok(0) => return None,
            Ok(count) => at += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    (Identity::of(file).ok()? == Some(identity)).then_some(content)
}

fn list(directory: &DocumentRoot, name: &[u8], shows: bool) -> Result<Vec<ListedEntry>, Status> {
    let refused = |error: LookUpError| match error {
        LookUpError::Refused(status) => status,
        LookUpError::Cold => Status::SERVICE_UNAVAILABLE,
    };
    let root = directory.root(Patience::Disk).map_err(|_| Status::NOT_FOUND)?;
    directory.list(root.as_fd(), name, shows).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a file ends the look-up. If another name ended it, the names behind that one would be
    /// asked for again and again, because `Routed` needs their results.
    #[test]
    fn names_are_looked_up_to_the_first_file() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("directory")).unwrap();
        std::fs::write(home.path().join("file"), "").unwrap();
        let directory = DocumentRoot::new(home.path()).unwrap();
        let keys = ["nothing", "directory", ".hidden", "file", "behind"].map(|key| key.as_bytes().to_vec());
        let question = Question::Names { at: 0, directory, memory_bytes: 0, keys: keys.to_vec() };
        let Learned::Names(0, found) = question.answer() else { panic!("it has asked for names") };
        assert_eq!(found.len(), 4);
        assert!(matches!(found[1].1, Ok(Found::Directory)) && matches!(found[3].1, Ok(Found::File(_))));
    }
}

//! The names of Haskell-MPI: each has a case in `conformance/parity.rs`, or is in a list of names
//! that are missing, with the reason. And each is found in the documentation, as an alias of our
//! call.

use crate::conformance::parity::{NAMES, cases};
use std::collections::BTreeSet;
use std::path::Path;

/// What the module `Base` exports.
const BASE: &str = "
    mpi mpiWorld init finalize initialized finalized initThread queryThread isThreadMain ThreadSupport abort
    Request Status getCount test testPtr wait waitPtr cancel cancelPtr requestNull
    commWorld commSelf commNull commSize commRank commTestInter commRemoteSize commCompare commFree commGroup
    commSetErrhandler commGetErrhandler errorsAreFatal errorsReturn errorsThrowExceptions MPIError ErrorClass
    toTag fromTag anyTag unitTag tagUpperBound rankId toRank fromRank anySource theRoot procNull barrier
    groupEmpty groupRank groupSize groupUnion groupIntersection groupDifference groupCompare groupExcl groupIncl
    groupTranslateRanks ComparisonResult
    char wchar short int long longLong unsignedChar unsignedShort unsigned unsignedLong unsignedLongLong float
    double longDouble byte packed typeSize
    maxOp minOp sumOp prodOp landOp bandOp lorOp borOp lxorOp bxorOp
    wtime wtick wtimeIsGlobal getProcessorName getVersion getImplementation universeSize
    Info infoNull infoCreate infoSet infoDelete infoGet
    commGetParent commSpawn commSpawnSimple argvNull errcodesIgnore openPort closePort commAccept commConnect
    commDisconnect";

/// What the module `Simple` exports.
const SIMPLE: &str = "
    send ssend rsend recv sendBS recvBS isend issend isendBS waitall
    Future recvFuture waitFuture getFutureStatus pollFuture cancelFuture
    bcastSend bcastRecv scatterSend scatterRecv gatherSend gatherRecv allgather alltoall";

/// What the module `Fast` exports.
const FAST: &str = "
    Repr SendFrom RecvInto send ssend rsend recv isend issend irecv isendPtr issendPtr irecvPtr waitall
    bcastSend bcastRecv scatterSend scatterRecv scattervSend scattervRecv gatherSend gatherRecv
    gathervSend gathervRecv reduceSend reduceRecv allgather allgatherv alltoall alltoallv allreduce
    reduceScatter reduceScatterBlock opCreate opFree
    intoNewArray intoNewArray_ intoNewVal intoNewVal_ intoNewBS intoNewBS_";

/// The names for which there is no call, and why.
const MISSING: [(&str, &str, &str); 15] = [
    ("Base", "initialized", "the body of a run has a `Communicator` only while MPI runs"),
    ("Base", "finalized", "the body of a run has a `Communicator` only while MPI runs"),
    ("Base", "queryThread", "each thread of a rank may call everything, on every engine"),
    ("Base", "isThreadMain", "each thread of a rank may call everything, on every engine"),
    ("Base", "abort", "a rank that panics or returns an error is told to the others"),
    ("Base", "wchar", "its size differs between machines: a program sends `u32` or `char`"),
    ("Base", "longDouble", "Rust has no such number"),
    ("Base", "packed", "`Layout` packs and unpacks without a type of its own"),
    ("Base", "wtime", "the standard library has `Instant`"),
    ("Base", "wtick", "the standard library has `Instant`"),
    ("Base", "wtimeIsGlobal", "the standard library has `Instant`, which belongs to one machine"),
    ("Base", "getProcessorName", "it is the host's name, which the system tells"),
    ("Base", "universeSize", "no engine knows how many ranks could be spawned"),
    ("Fast", "issend", "`issend` sends a `Vec` of elements as a value"),
    ("Fast", "issendPtr", "`issend` sends a `Vec` of elements as a value"),
];

fn listed(module: &str) -> BTreeSet<&'static str> {
    let list = match module {
        "Base" => BASE,
        "Simple" => SIMPLE,
        _ => FAST,
    };
    list.split_whitespace().collect()
}

#[test]
fn each_name_has_a_case_or_a_reason() {
    for (module, names) in NAMES {
        let missing = MISSING.iter().filter(|(of, ..)| *of == module).map(|(_, name, _)| *name);
        let mut seen = BTreeSet::new();
        for name in names.iter().copied().chain(missing) {
            assert!(seen.insert(name), "{module}.{name} is here twice");
        }
        assert_eq!(seen, listed(module), "{module}");
    }
    let all = NAMES.iter().map(|(_, names)| names.len()).sum::<usize>();
    println!("{all} names in {} cases, {} are missing", cases().count(), MISSING.len());
}

/// The text of all files below a directory.
fn text_below(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).expect("the source is here");
    let text = |path: &Path| match path.is_dir() {
        true => text_below(path),
        false => std::fs::read_to_string(path).expect("the source is text"),
    };
    entries.map(|entry| text(&entry.expect("the source is here").path())).collect()
}

/// A search of the documentation for a function of Haskell-MPI finds our call.
#[test]
fn each_name_is_found_in_the_documentation() {
    let source = text_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let is_found = |name: &str| {
        let ours = ["fn ", "async fn ", "struct ", "enum "].map(|kind| format!("pub {kind}{name}"));
        source.contains(&format!("doc(alias = \"{name}\")")) || ours.iter().any(|ours| source.contains(ours))
    };
    for (module, names) in NAMES {
        let lost: Vec<_> = names.iter().filter(|name| !is_found(name)).collect();
        assert!(lost.is_empty(), "{module}: no alias says {lost:?}");
    }
}

//! [`MpiFamily`]: the binary interfaces of MPI libraries, and the [`AbiTable`] of each: its
//! handles, constants, statuses and classes of errors.
//!
//! `start.rs` recognises the family of the library, and `calls.rs` reads the table. The values are
//! those of the headers `mpi.h` of Open MPI 4.1 and 5.0 and of MPICH 4.0 and 5.0, and of
//! `mpi_abi.h` of MPI 5. A new constant is a line in each of the three tables. `calls.rs` asks the
//! library for the size of each kind of numbers when it starts, so a table that does not fit the
//! library is noticed there.
//!
//! A handle is an integer under MPICH and a pointer under the others. So code that passes handles
//! has their type as a parameter, [`MpiHandle`]: it is compiled for both, and calls the library's
//! functions by their true signatures.

use super::error::MpiErrorClass;
use super::library::Library;
use super::scalar::{ReduceOp, Scalar};
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::ptr::NonNull;

/// A binary interface that MPI libraries share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiFamily {
    /// Open MPI 4 and 5: handles are addresses of objects that the library exports.
    OpenMpi,
    /// MPICH and the libraries derived from it: handles are integers of 32 bits.
    Mpich,
    /// The standard interface of MPI 5: handles are pointers, and those of constants small numbers.
    Standard,
}

impl MpiFamily {
    /// The family of a library. `None` for a library of another kind.
    pub(super) fn of(library: &Library) -> Option<MpiFamily> {
        // A library with the standard interface may stand on one of the others, and the loader
        // finds the symbols of that one too. So the standard interface is looked for first.
        if speaks_standard(library) {
            Some(MpiFamily::Standard)
        } else if library.symbol(c"ompi_mpi_comm_world").is_some() {
            Some(MpiFamily::OpenMpi)
        } else if library.symbol(c"MPIR_Dup_fn").is_some() {
            Some(MpiFamily::Mpich)
        } else {
            None
        }
    }
}

/// Whether the library has the standard interface. A library of MPI 5 with an interface of its own
/// has the function that tells it, too, and answers with the version -1.
fn speaks_standard(library: &Library) -> bool {
    let Some(function) = library.symbol(c"MPI_Abi_get_version") else { return false };
    // SAFETY: a symbol of this name is the function of MPI 5 with this signature.
    let get_version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(function.as_ptr()) };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: MPI 5 allows the call before MPI is started, and both places can be written.
    let code = unsafe { get_version(&mut major, &mut minor) };
    code == 0 && major >= 1
}

impl fmt::Display for MpiFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MpiFamily::OpenMpi => "Open MPI",
            MpiFamily::Mpich => "MPICH",
            MpiFamily::Standard => "the standard interface of MPI 5",
        })
    }
}

/// A handle of the library, as it is passed to functions: [`c_int`] or [`MpiPointer`].
pub(super) trait MpiHandle: Copy + PartialEq + Send + fmt::Debug + 'static {}

impl MpiHandle for c_int {}

/// A handle that is a pointer. It is passed on and compared, and never followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct MpiPointer(*mut c_void);

impl MpiHandle for MpiPointer {}

// SAFETY: to this process the pointer is a number. The library alone follows it.
unsafe impl Send for MpiPointer {}

/// What the functions of one family take and give.
#[derive(Clone, Debug)]
pub(super) struct AbiTable<H> {
    pub(super) world: H,
    pub(super) own: H,
    pub(super) no_comm: H,
    pub(super) no_request: H,
    pub(super) no_message: H,
    pub(super) errors_return: H,
    /// Bytes without a meaning.
    pub(super) byte: H,
    /// The kinds of numbers, in the order of [`Scalar::ALL`].
    scalars: Vec<H>,
    /// The operations, in the order of [`ReduceOp::ALL`].
    ops: Vec<H>,
    /// What lets MPI end without the other ranks.
    pub(super) ends_alone: Option<LibrarySwitch>,
    pub(super) numbers: &'static Numbers,
}

/// A switch of a library, which is no part of MPI: one byte that the library reads.
#[derive(Clone, Debug)]
pub(super) struct LibrarySwitch(NonNull<u8>);

// SAFETY: it is the address of an object of the library, which is never unloaded. The holder of
// the driver alone follows it.
unsafe impl Send for LibrarySwitch {}

impl LibrarySwitch {
    /// Turns it on. No call of the library is under way.
    pub(super) fn turn_on(&self) {
        // SAFETY: `open_mpi` has found the object, which is a `bool` of C, so 1 is a value of it.
        // The library's own OS threads do not read it.
        unsafe { self.0.write(1) };
    }
}

impl<H: MpiHandle> AbiTable<H> {
    pub(super) fn scalar(&self, scalar: Scalar) -> H {
        self.scalars[scalar as usize]
    }

    pub(super) fn op(&self, op: ReduceOp) -> H {
        self.ops[op as usize]
    }
}

/// The constants of one family that are no handles.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) any_source: c_int,
    pub(super) any_tag: c_int,
    pub(super) undefined: c_int,
    /// The address that says "in place".
    pub(super) in_place: isize,
    /// The level at which one OS thread of several makes all calls.
    pub(super) funneled: c_int,
    /// The level at which all OS threads may make calls, one at a time.
    pub(super) serialized: c_int,
    /// The attribute that has the greatest tag.
    pub(super) tag_max: c_int,
    /// The attribute that tells whether MPI goes on when a rank has died.
    pub(super) bears_deaths: Option<c_int>,
    pub(super) status: StatusLayout,
    errors: &'static [(c_int, MpiErrorClass)],
}

impl Numbers {
    /// The class that the library knows by this number.
    pub(super) fn class(&self, number: c_int) -> MpiErrorClass {
        let known = self.errors.iter().find(|(known, _)| *known == number);
        known.map_or(MpiErrorClass::Unlisted(number), |&(_, class)| class)
    }
}

/// Where the fields of a status lie, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusLayout {
    pub(super) bytes: usize,
    pub(super) source: usize,
    pub(super) tag: usize,
    pub(super) error: usize,
}

/// The bytes of the largest status of the three families.
pub(super) const STATUS_BYTES_MAX: usize = 32;

/// The table of MPICH.
pub(super) fn mpich() -> AbiTable<c_int> {
    // A handle's bits say of which kind the object is, and its size.
    let number = |bits: u32| bits as c_int;
    AbiTable {
        world: number(0x4400_0000),
        own: number(0x4400_0001),
        no_comm: number(0x0400_0000),
        no_request: number(0x2c00_0000),
        no_message: number(0x2c00_0000),
        errors_return: number(0x5400_0001),
        byte: number(0x4c00_010d),
        scalars: [0x137, 0x238, 0x439, 0x83a, 0x13b, 0x23c, 0x43d, 0x83e, 0x40a, 0x80b]
            .map(|low| number(0x4c00_0000 | low))
            .to_vec(),
        ops: (1..=10).map(|low| number(0x5800_0000 | low)).collect(),
        ends_alone: None,
        numbers: &Numbers {
            any_source: -2,
            any_tag: -1,
            undefined: -32766,
            in_place: -1,
            funneled: 1,
            serialized: 2,
            tag_max: 0x6440_0001,
            bears_deaths: None,
            status: StatusLayout { bytes: 20, source: 8, tag: 12, error: 16 },
            errors: &[
                (1, MpiErrorClass::Buffer),
                (2, MpiErrorClass::Count),
                (3, MpiErrorClass::Type),
                (4, MpiErrorClass::Tag),
                (5, MpiErrorClass::Comm),
                (6, MpiErrorClass::Rank),
                (7, MpiErrorClass::Root),
                (8, MpiErrorClass::Group),
                (9, MpiErrorClass::Op),
                (10, MpiErrorClass::Topology),
                (11, MpiErrorClass::Dims),
                (12, MpiErrorClass::Arg),
                (13, MpiErrorClass::Unknown),
                (14, MpiErrorClass::Truncate),
                (15, MpiErrorClass::Other),
                (16, MpiErrorClass::Intern),
                (17, MpiErrorClass::InStatus),
                (18, MpiErrorClass::Pending),
                (19, MpiErrorClass::Request),
                (33, MpiErrorClass::Name),
                (34, MpiErrorClass::NoMem),
                (38, MpiErrorClass::Port),
                (41, MpiErrorClass::Service),
                (42, MpiErrorClass::Spawn),
                (44, MpiErrorClass::UnsupportedOperation),
                (76, MpiErrorClass::ProcAborted),
                (101, MpiErrorClass::ProcFailed),
                (102, MpiErrorClass::ProcFailedPending),
                (103, MpiErrorClass::Revoked),
            ],
        },
    }
}

/// The table of Open MPI. Its handles are addresses in the library. The error is the name of an
/// object that the library lacks.
pub(super) fn open_mpi(library: &Library) -> Result<AbiTable<MpiPointer>, String> {
    let object = |name: &str| {
        let symbol = CString::new(format!("ompi_{name}")).expect("the name has no zero byte");
        let address = library.symbol(&symbol).ok_or_else(|| symbol.to_string_lossy().into_owned())?;
        Ok::<_, String>(MpiPointer(address.as_ptr()))
    };
    let objects =
        |names: &[&str]| names.iter().map(|name| object(&format!("mpi_{name}"))).collect::<Result<_, _>>();
    Ok(AbiTable {
        world: object("mpi_comm_world")?,
        own: object("mpi_comm_self")?,
        no_comm: object("mpi_comm_null")?,
        no_request: object("request_null")?,
        no_message: object("message_null")?,
        errors_return: object("mpi_errors_return")?,
        byte: object("mpi_byte")?,
        scalars: objects(&[
            "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
            "float", "double",
        ])?,
        ops: objects(&[
            "op_max", "op_min", "op_sum", "op_prod", "op_land", "op_band", "op_lor", "op_bor", "op_lxor",
            "op_bxor",
        ])?,
        ends_alone: library.symbol(c"ompi_async_mpi_finalize").map(|address| LibrarySwitch(address.cast())),
        numbers: &Numbers {
            any_source: -1,
            any_tag: -1,
            undefined: -32766,
            in_place: 1,
            funneled: 1,
            serialized: 2,
            tag_max: 0,
            bears_deaths: Some(12),
            status: StatusLayout { bytes: 24, source: 0, tag: 4, error: 8 },
            errors: &[
                (1, MpiErrorClass::Buffer),
                (2, MpiErrorClass::Count),
                (3, MpiErrorClass::Type),
                (4, MpiErrorClass::Tag),
                (5, MpiErrorClass::Comm),
                (6, MpiErrorClass::Rank),
                (7, MpiErrorClass::Request),
                (8, MpiErrorClass::Root),
                (9, MpiErrorClass::Group),
                (10, MpiErrorClass::Op),
                (11, MpiErrorClass::Topology),
                (12, MpiErrorClass::Dims),
                (13, MpiErrorClass::Arg),
                (14, MpiErrorClass::Unknown),
                (15, MpiErrorClass::Truncate),
                (16, MpiErrorClass::Other),
                (17, MpiErrorClass::Intern),
                (18, MpiErrorClass::InStatus),
                (19, MpiErrorClass::Pending),
                (38, MpiErrorClass::Name),
                (39, MpiErrorClass::NoMem),
                (43, MpiErrorClass::Port),
                (48, MpiErrorClass::Service),
                (50, MpiErrorClass::Spawn),
                (52, MpiErrorClass::UnsupportedOperation),
                (74, MpiErrorClass::ProcAborted),
                (75, MpiErrorClass::ProcFailed),
                (76, MpiErrorClass::ProcFailedPending),
                (77, MpiErrorClass::Revoked),
            ],
        },
    })
}

/// The table of the standard interface.
pub(super) fn standard() -> AbiTable<MpiPointer> {
    let number = |value: usize| MpiPointer(std::ptr::without_provenance_mut(value));
    AbiTable {
        world: number(0x101),
        own: number(0x102),
        no_comm: number(0x100),
        no_request: number(0x180),
        no_message: number(0x128),
        errors_return: number(0x143),
        byte: number(0x247),
        scalars: [0x240, 0x248, 0x250, 0x258, 0x241, 0x249, 0x251, 0x259, 0x210, 0x214].map(number).to_vec(),
        ops: [0x23, 0x22, 0x21, 0x24, 0x30, 0x28, 0x31, 0x29, 0x32, 0x2a].map(number).to_vec(),
        ends_alone: None,
        numbers: &Numbers {
            any_source: -1,
            any_tag: -2,
            undefined: -32766,
            in_place: 1,
            funneled: 1024,
            serialized: 2048,
            tag_max: 501,
            bears_deaths: None,
            status: StatusLayout { bytes: 32, source: 0, tag: 4, error: 8 },
            errors: &[
                (1, MpiErrorClass::Buffer),
                (2, MpiErrorClass::Count),
                (3, MpiErrorClass::Type),
                (4, MpiErrorClass::Tag),
                (5, MpiErrorClass::Comm),
                (6, MpiErrorClass::Rank),
                (7, MpiErrorClass::Request),
                (8, MpiErrorClass::Root),
                (9, MpiErrorClass::Group),
                (10, MpiErrorClass::Op),
                (11, MpiErrorClass::Topology),
                (12, MpiErrorClass::Dims),
                (13, MpiErrorClass::Arg),
                (14, MpiErrorClass::Unknown),
                (15, MpiErrorClass::Truncate),
                (16, MpiErrorClass::Other),
                (17, MpiErrorClass::Intern),
                (18, MpiErrorClass::Pending),
                (19, MpiErrorClass::InStatus),
                (38, MpiErrorClass::Name),
                (39, MpiErrorClass::NoMem),
                (43, MpiErrorClass::Port),
                (51, MpiErrorClass::Service),
                (53, MpiErrorClass::Spawn),
                (55, MpiErrorClass::UnsupportedOperation),
                (58, MpiErrorClass::ProcAborted),
            ],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_every_kind_and_every_operation() {
        for (scalars, ops) in
            [(mpich().scalars.len(), mpich().ops.len()), (standard().scalars.len(), standard().ops.len())]
        {
            assert_eq!((scalars, ops), (Scalar::ALL.len(), ReduceOp::ALL.len()));
        }
        // The third digit from the right of a datatype of MPICH is its size.
        for &scalar in Scalar::ALL {
            assert_eq!((mpich().scalar(scalar) >> 8) as usize & 0xff, scalar.bytes());
        }
    }

    #[test]
    fn classes_have_the_numbers_of_their_family() {
        for (numbers, truncate) in [(mpich().numbers, 14), (standard().numbers, 15)] {
            assert_eq!(numbers.class(truncate), MpiErrorClass::Truncate);
            assert_eq!(numbers.class(9999), MpiErrorClass::Unlisted(9999));
            assert!(numbers.status.bytes <= STATUS_BYTES_MAX);
        }
    }
}

//! [`MpiFunctions`]: the addresses of the library's functions, with their signatures.
//!
//! `calls.rs` calls them, and nothing else does. A new function is a line in the list below.

use super::library::Library;
use std::ffi::{CStr, c_char, c_int, c_void};

/// A function with its name in MPI's standard.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedFunction<F> {
    pub(super) function: F,
    pub(super) name: &'static str,
}

/// A function of the library by its name, with this type, if the library has it.
macro_rules! function {
    ($library:ident, $name:expr, $type:ty) => {
        address($library, concat!($name, "\0")).map(|address| {
            // SAFETY: a symbol of this name in an MPI library is the function of MPI's standard, or
            // of its proposal ULFM. The caller of `MpiFunctions::of` says what a handle is.
            let function = unsafe { std::mem::transmute::<*mut c_void, $type>(address) };
            NamedFunction { function, name: $name }
        })
    };
}

/// Declares `MpiFunctions` and its look-up. Each line has the field, the function, and the types of
/// its arguments. An optional function may be missing.
macro_rules! functions {
    (
        optional { $($maybe:ident: $maybe_name:ident($($maybe_argument:ty),*);)+ }
        $($field:ident: $name:ident($($argument:ty),*);)+
    ) => {
        /// The functions of a library with handles of the type `H`.
        #[derive(Debug)]
        pub(super) struct MpiFunctions<H> {
            $(pub(super) $field: NamedFunction<unsafe extern "C" fn($($argument),*) -> c_int>,)+
            $(pub(super) $maybe: Option<NamedFunction<unsafe extern "C" fn($($maybe_argument),*) -> c_int>>,)+
            pub(super) wtime: NamedFunction<unsafe extern "C" fn() -> f64>,
        }

        impl<H> MpiFunctions<H> {
            /// Looks the functions up. The error is the name of one that the library lacks.
            ///
            /// # Safety
            /// The library is an MPI library with handles of the type `H`.
            pub(super) unsafe fn of(library: &Library) -> Result<MpiFunctions<H>, &'static str> {
                Ok(MpiFunctions {
                    $($field: function!(
                        library, stringify!($name), unsafe extern "C" fn($($argument),*) -> c_int
                    ).ok_or(stringify!($name))?,)+
                    $($maybe: function!(
                        library, stringify!($maybe_name), unsafe extern "C" fn($($maybe_argument),*) -> c_int
                    ),)+
                    wtime: function!(library, "MPI_Wtime", unsafe extern "C" fn() -> f64).ok_or("MPI_Wtime")?,
                })
            }
        }
    };
}

fn address(library: &Library, symbol: &'static str) -> Option<*mut c_void> {
    let symbol = CStr::from_bytes_with_nul(symbol.as_bytes()).expect("the list adds the zero byte");
    library.symbol(symbol).map(|address| address.as_ptr())
}

/// Numbers or messages that MPI reads.
type ReadPlace = *const c_void;
/// Room for numbers or messages that MPI writes.
type WritePlace = *mut c_void;
/// Counts or places of blocks, one for each rank; or lengths, one for each block of a type.
type PerRank = *const c_int;
/// Room for a status, or for several.
type StatusPlace = *mut u8;

functions! {
    optional {
        comm_failure_ack: MPIX_Comm_failure_ack(H);
        comm_failure_get_acked: MPIX_Comm_failure_get_acked(H, *mut H);
    }
    init_thread: MPI_Init_thread(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    initialized: MPI_Initialized(*mut c_int);
    finalize: MPI_Finalize();
    abort: MPI_Abort(H, c_int);
    get_library_version: MPI_Get_library_version(*mut c_char, *mut c_int);
    get_processor_name: MPI_Get_processor_name(*mut c_char, *mut c_int);
    error_class: MPI_Error_class(c_int, *mut c_int);
    error_string: MPI_Error_string(c_int, *mut c_char, *mut c_int);
    type_size: MPI_Type_size(H, *mut c_int);
    type_contiguous: MPI_Type_contiguous(c_int, H, *mut H);
    type_create_struct: MPI_Type_create_struct(c_int, PerRank, *const isize, *const H, *mut H);
    type_commit: MPI_Type_commit(*mut H);
    type_free: MPI_Type_free(*mut H);
    comm_size: MPI_Comm_size(H, *mut c_int);
    comm_rank: MPI_Comm_rank(H, *mut c_int);
    comm_idup: MPI_Comm_idup(H, *mut H, *mut H);
    comm_split: MPI_Comm_split(H, c_int, c_int, *mut H);
    comm_free: MPI_Comm_free(*mut H);
    comm_set_errhandler: MPI_Comm_set_errhandler(H, H);
    comm_group: MPI_Comm_group(H, *mut H);
    group_size: MPI_Group_size(H, *mut c_int);
    group_translate_ranks: MPI_Group_translate_ranks(H, c_int, *const c_int, H, *mut c_int);
    group_free: MPI_Group_free(*mut H);
    comm_get_attr: MPI_Comm_get_attr(H, c_int, *mut c_void, *mut c_int);
    isend: MPI_Isend(ReadPlace, c_int, H, c_int, c_int, H, *mut H);
    issend: MPI_Issend(ReadPlace, c_int, H, c_int, c_int, H, *mut H);
    improbe: MPI_Improbe(c_int, c_int, H, *mut c_int, *mut H, StatusPlace);
    imrecv: MPI_Imrecv(WritePlace, c_int, H, *mut H, *mut H);
    get_elements_x: MPI_Get_elements_x(*const u8, H, *mut i64);
    irecv: MPI_Irecv(WritePlace, c_int, H, c_int, c_int, H, *mut H);
    cancel: MPI_Cancel(*mut H);
    wait: MPI_Wait(*mut H, StatusPlace);
    test: MPI_Test(*mut H, *mut c_int, StatusPlace);
    testsome: MPI_Testsome(c_int, *mut H, *mut c_int, *mut c_int, StatusPlace);
    ibarrier: MPI_Ibarrier(H, *mut H);
    ibcast: MPI_Ibcast(WritePlace, c_int, H, c_int, H, *mut H);
    ireduce: MPI_Ireduce(ReadPlace, WritePlace, c_int, H, H, c_int, H, *mut H);
    iallreduce: MPI_Iallreduce(ReadPlace, WritePlace, c_int, H, H, H, *mut H);
    iscan: MPI_Iscan(ReadPlace, WritePlace, c_int, H, H, H, *mut H);
    iexscan: MPI_Iexscan(ReadPlace, WritePlace, c_int, H, H, H, *mut H);
    ireduce_scatter_block: MPI_Ireduce_scatter_block(ReadPlace, WritePlace, c_int, H, H, H, *mut H);
    igather: MPI_Igather(ReadPlace, c_int, H, WritePlace, c_int, H, c_int, H, *mut H);
    igatherv: MPI_Igatherv(ReadPlace, c_int, H, WritePlace, PerRank, PerRank, H, c_int, H, *mut H);
    iscatter: MPI_Iscatter(ReadPlace, c_int, H, WritePlace, c_int, H, c_int, H, *mut H);
    iscatterv: MPI_Iscatterv(ReadPlace, PerRank, PerRank, H, WritePlace, c_int, H, c_int, H, *mut H);
    iallgather: MPI_Iallgather(ReadPlace, c_int, H, WritePlace, c_int, H, H, *mut H);
    iallgatherv: MPI_Iallgatherv(ReadPlace, c_int, H, WritePlace, PerRank, PerRank, H, H, *mut H);
    ialltoall: MPI_Ialltoall(ReadPlace, c_int, H, WritePlace, c_int, H, H, *mut H);
    ialltoallv: MPI_Ialltoallv(ReadPlace, PerRank, PerRank, H, WritePlace, PerRank, PerRank, H, H, *mut H);
}

//! [`fate_of_cancellation`]: what an unwinding from here would do to the running stack.
//!
//! `waiting.rs` asks before it throws a cancellation, because a panic that reaches a frame that
//! refuses it aborts the process. If no frame has anything to drop, the stack need not be unwound
//! at all.
//!
//! A function that C code calls is such a frame. Each frame has a table of call sites, which a
//! compiler has made. For each call the table says one of four: the panic passes, destructors run,
//! the panic is caught, or it is refused. The unwinder goes from frame to frame by these tables
//! until a frame catches. This file reads the same tables in the same way, and throws nothing:
//!
//! ```text
//!   header: base of the landing pads, types' format and end, format and length of the call sites
//!   call sites: start, length, landing pad, action         by address; a call that is not listed
//!                                                          must not unwind
//!   actions: which of the types, where the next action is  > 0: catches that type
//!                                                          = 0: runs destructors
//!                                                          < 0: refuses
//!   types: ... third, second, first                        null: any
//! ```

use crate::stack::NativeStack;
use corosensei::Coroutine;
use std::ffi::{c_int, c_void};
use std::ptr;

/// A frame as the unwinder hands it out.
#[repr(C)]
struct Frame {
    _opaque: [u8; 0],
}

type Visit = extern "C-unwind" fn(*mut Frame, *mut c_void) -> c_int;

// The unwinder that std is linked with. As functions that may unwind, so that calls of them are
// listed as call sites.
unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(visit: Visit, data: *mut c_void) -> c_int;
    fn _Unwind_GetIPInfo(frame: *mut Frame, before: *mut c_int) -> usize;
    fn _Unwind_GetRegionStart(frame: *mut Frame) -> usize;
    fn _Unwind_GetLanguageSpecificData(frame: *mut Frame) -> *const u8;
}

/// Whether the address sanitizer runs. It marks bytes between the variables on a stack, and each
/// function takes its marks away at its end. So its functions must end. A coroutine has four words,
/// and for the sanitizer also the bounds of its stack.
const IS_SANITIZED: bool = size_of::<Coroutine<(), (), (), NativeStack>>() > 4 * size_of::<usize>();

/// Go on to the next frame.
const NEXT: c_int = 0;
/// Any other value ends the walk.
const ENOUGH: c_int = 4;

/// What a frame does with a panic that comes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PanicFate {
    LetsPass,
    /// Runs destructors, and lets it pass.
    Drops,
    Catches,
    Refuses,
}

/// What a cancellation that begins here would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancellationFate {
    /// A frame refuses it before one catches it.
    Refused,
    /// A frame catches it.
    Caught,
    /// It would come to the root of the stack, and run no code on its way.
    Idle,
}

/// A walk from frame to frame.
struct Walk {
    /// The function that has all frames of the program's code below its own.
    outermost: usize,
    /// The walk has come to the frame of that function.
    is_past: bool,
    drops: bool,
    fate: CancellationFate,
}

/// What a cancellation that begins here would do, on a stack where the frame of the function
/// `outermost` is around those of the program's code.
///
/// # Complexity
/// Linear in the number of frames, some microseconds for ten. Only a cancellation pays it.
#[inline(never)]
pub(crate) fn fate_of_cancellation(outermost: *const ()) -> CancellationFate {
    // A frame that the unwinder cannot step over ends the walk. It would abort the unwinding.
    let fate = CancellationFate::Refused;
    let mut walk = Walk { outermost: outermost.addr(), is_past: false, drops: false, fate };
    if cfg!(panic = "unwind") {
        // SAFETY: `visit` expects the address of a `Walk`, and this call alone uses the address.
        unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    }
    walk.fate
}

extern "C-unwind" fn visit(frame: *mut Frame, walk: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes a frame that is valid during this call, and the `walk` that
    // `fate_of_cancellation` has given to it. The table is null, or a compiler has made it for the
    // function of this frame.
    let (walk, function, fate) = unsafe {
        let mut before = 0;
        let ip = _Unwind_GetIPInfo(frame, &mut before);
        let function = _Unwind_GetRegionStart(frame);
        // A return address lies behind its call.
        let call = (ip - usize::from(before == 0)).wrapping_sub(function);
        let fate = fate_of_panic(_Unwind_GetLanguageSpecificData(frame), call);
        (&mut *walk.cast::<Walk>(), function, fate)
    };
    walk.fate = match fate {
        PanicFate::LetsPass | PanicFate::Drops => {
            walk.drops |= fate == PanicFate::Drops;
            walk.is_past |= function == walk.outermost;
            return NEXT;
        }
        PanicFate::Catches if walk.is_past && !walk.drops && !IS_SANITIZED => CancellationFate::Idle,
        PanicFate::Catches => CancellationFate::Caught,
        PanicFate::Refuses => CancellationFate::Refused,
    };
    ENOUGH
}

/// What the function with this table does with a panic of the call at this distance from its start.
///
/// # Safety
/// `table` is null, or a compiler has made it for the function.
unsafe fn fate_of_panic(table: *const u8, call: usize) -> PanicFate {
    if table.is_null() {
        return PanicFate::LetsPass;
    }
    // SAFETY: by the caller's contract the table has these fields, in this order.
    unsafe {
        let mut table = Reader(table);
        let base = table.byte();
        if base != OMITTED {
            table.number(base);
        }
        let type_format = table.byte();
        let types = match type_format {
            OMITTED => ptr::null(),
            _ => {
                let end = table.unsigned();
                table.0.add(end)
            }
        };
        let format = table.byte();
        let length = table.unsigned();
        let actions = table.0.add(length);
        while table.0 < actions {
            let (start, length, pad) = (table.number(format), table.number(format), table.number(format));
            let action = table.unsigned();
            if call < start {
                break;
            }
            if call < start + length {
                return match (pad, action) {
                    (0, _) => PanicFate::LetsPass,
                    (_, 0) => PanicFate::Drops,
                    _ => acts(actions.add(action - 1), types, type_format),
                };
            }
        }
    }
    PanicFate::Refuses
}

/// What a landing pad with these actions does with a panic.
///
/// # Safety
/// `action` is the start of a list of actions. `types` is the end of the table of types, if the
/// function has one.
unsafe fn acts(action: *const u8, types: *const u8, type_format: u8) -> PanicFate {
    let mut action = Reader(action);
    loop {
        // SAFETY: the caller's contract. The distance to the next action counts from the place of
        // the distance itself.
        unsafe {
            let which = action.signed();
            let here = action.0;
            let next = action.signed();
            match which {
                ..=-1 => return PanicFate::Refuses,
                1.. if type_format != OMITTED => {
                    let bytes = width(type_format);
                    let entry = types.sub(which as usize * bytes);
                    if (0..bytes).all(|at| *entry.add(at) == 0) {
                        return PanicFate::Catches;
                    }
                }
                _ => {} // it runs destructors, or catches exceptions of another language
            }
            if next == 0 {
                return PanicFate::Drops;
            }
            action = Reader(here.offset(next));
        }
    }
}

/// The format of a field that the table leaves out.
const OMITTED: u8 = 0xff;

/// The bytes of a number in a format of fixed length.
fn width(format: u8) -> usize {
    match format & 0x07 {
        2 => 2,
        3 => 4,
        _ => 8,
    }
}

/// Reads a table from front to back.
struct Reader(*const u8);

impl Reader {
    /// # Safety
    /// The bytes that are read lie within the table. The same holds for the other functions.
    unsafe fn byte(&mut self) -> u8 {
        // SAFETY: the caller's contract.
        unsafe {
            let byte = *self.0;
            self.0 = self.0.add(1);
            byte
        }
    }

    /// A number in groups of seven bits, the lowest group first (LEB128). Returns the number, how
    /// many bits it had, and its last byte.
    ///
    /// # Safety
    /// As `byte`.
    unsafe fn sevens(&mut self) -> (usize, u32, u8) {
        let (mut number, mut bits) = (0, 0);
        loop {
            // SAFETY: the caller's contract.
            let byte = unsafe { self.byte() };
            number |= usize::from(byte & 0x7f) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                return (number, bits, byte);
            }
        }
    }

    /// # Safety
    /// As `byte`.
    unsafe fn unsigned(&mut self) -> usize {
        // SAFETY: the caller's contract.
        unsafe { self.sevens() }.0
    }

    /// # Safety
    /// As `byte`.
    unsafe fn signed(&mut self) -> isize {
        // SAFETY: the caller's contract.
        let (number, bits, last) = unsafe { self.sevens() };
        let sign = if last & 0x40 != 0 && bits < usize::BITS { usize::MAX << bits } else { 0 };
        (number | sign) as isize
    }

    /// A number in one of the formats for distances within a function.
    ///
    /// # Safety
    /// As `byte`.
    unsafe fn number(&mut self, format: u8) -> usize {
        // SAFETY: the caller's contract.
        unsafe {
            if format & 0x0f == 1 {
                return self.unsigned();
            }
            let bytes = width(format);
            (0..bytes).fold(0, |number, at| number | usize::from(self.byte()) << (8 * at))
        }
    }
}

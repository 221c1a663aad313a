//! Whether a stack can be unwound from here: looked up before that is tried, because a panic that
//! comes to a frame that refuses it aborts the process.
//!
//! A function that C code calls is such a frame. What a frame does with a panic is written in its
//! table of call sites: nothing, or running destructors, or catching it, or refusing it. The
//! unwinder goes from frame to frame by these tables until one catches; so does this.
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

use std::ffi::{c_int, c_void};
use std::ptr;

/// What the unwinder knows of a frame.
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

/// Go on to the next frame.
const NEXT: c_int = 0;
/// Any other value ends the walk.
const ENOUGH: c_int = 4;

/// What a frame does with a panic that comes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    LetsPass,
    Catches,
    Refuses,
}

/// Whether a panic that begins here is caught, and no frame before that refuses it.
///
/// # Complexity
/// Linear in the number of frames, some microseconds for each: for what happens once in the life of
/// a thread.
#[inline(never)]
pub(crate) fn is_caught() -> bool {
    // A frame without a table of how to step over it ends the walk, and would end the unwinding.
    let mut found = Does::Refuses;
    // SAFETY: `visit` takes the address of a `Does`, and gets it, during this call alone.
    unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
    cfg!(panic = "unwind") && found == Does::Catches
}

extern "C-unwind" fn visit(frame: *mut Frame, found: *mut c_void) -> c_int {
    // SAFETY: the unwinder calls this with a frame that it may be asked about now; `found` is as
    // `is_caught` has given it. The table is one that a compiler has made for the function of this
    // frame, or null.
    unsafe {
        let mut before = 0;
        let ip = _Unwind_GetIPInfo(frame, &mut before);
        let function = _Unwind_GetRegionStart(frame);
        // A return address lies behind its call.
        let call = (ip - usize::from(before == 0)).wrapping_sub(function);
        let does = what_it_does(_Unwind_GetLanguageSpecificData(frame), call);
        if does == Does::LetsPass {
            return NEXT;
        }
        *found.cast::<Does>() = does;
        ENOUGH
    }
}

/// What the function with this table does with a panic of the call at this distance from its start.
///
/// # Safety
/// `table` is the one that a compiler has made for the function, or null.
unsafe fn what_it_does(table: *const u8, call: usize) -> Does {
    if table.is_null() {
        return Does::LetsPass;
    }
    // SAFETY: the caller's contract: what is read here is there, in this order.
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
                    (0, _) | (_, 0) => Does::LetsPass,
                    _ => acts(actions.add(action - 1), types, type_format),
                };
            }
        }
    }
    Does::Refuses
}

/// What a landing pad with these actions does.
///
/// # Safety
/// They are a list of actions, and the end of the table of types, if there is one.
unsafe fn acts(action: *const u8, types: *const u8, type_format: u8) -> Does {
    let mut action = Reader(action);
    loop {
        // SAFETY: the caller's contract. The next action is as far away as is said, from where that
        // is said.
        unsafe {
            let which = action.signed();
            let here = action.0;
            let next = action.signed();
            match which {
                ..=-1 => return Does::Refuses,
                1.. if type_format != OMITTED => {
                    let bytes = width(type_format);
                    let entry = types.sub(which as usize * bytes);
                    if (0..bytes).all(|at| *entry.add(at) == 0) {
                        return Does::Catches;
                    }
                }
                _ => {} // It runs destructors, or catches another language's.
            }
            if next == 0 {
                return Does::LetsPass;
            }
            action = Reader(here.offset(next));
        }
    }
}

/// A format that says that there is nothing.
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
    /// As for all of these: what is read is there.
    unsafe fn byte(&mut self) -> u8 {
        // SAFETY: the caller's contract.
        unsafe {
            let byte = *self.0;
            self.0 = self.0.add(1);
            byte
        }
    }

    /// A number in seven bits a byte, the lowest first; and how many bits there were, with the last
    /// byte.
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

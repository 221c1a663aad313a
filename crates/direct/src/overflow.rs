//! What happens when a stack overflows: a message that names the thread, and the end of the
//! process.
//!
//! `expect` installs the handler of `SIGSEGV`; `stack.rs` calls it when it makes a stack. The
//! handler runs on a stack of its own and may do only what is safe in a signal handler: no
//! allocation, no lock, no formatting. A fault at any other address goes to the handler that was
//! there before.

use crate::stack::current;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;

/// The size of the stack on which the handler runs, because the thread's own stack is full.
const HANDLER_STACK_BYTES: usize = 64 * 1024;

/// The action of the signal before this handler. [`expect`] writes it once, before it installs the
/// handler.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once, under `Once`, before the handler that reads it is installed.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));

/// Installs the handler, and gives this OS thread a stack for it. `map` (`stack.rs`) calls this
/// before the OS thread switches to a stack.
pub(crate) fn expect() {
    static INSTALL: Once = Once::new();
    thread_local! {
        static HANDLER_STACK: Option<HandlerStack> = HandlerStack::new();
    }
    INSTALL.call_once(|| {
        // SAFETY: all zeros are a valid `sigaction`. The first call writes `PREVIOUS`, and the
        // second one installs the handler, so the handler finds `PREVIOUS` written.
        unsafe {
            libc::sigaction(libc::SIGSEGV, ptr::null(), (*PREVIOUS.0.get()).as_mut_ptr());
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
        }
    });
    // If the OS thread is ending, its variables may be gone. Then it has no stack for the handler.
    let _ = HANDLER_STACK.try_with(|_| ());
}

/// A stack for handlers, for an OS thread that std has not given one.
struct HandlerStack {
    memory: *mut libc::c_void,
}

impl HandlerStack {
    fn new() -> Option<HandlerStack> {
        // SAFETY: the first call writes to a valid place. The memory is a fresh mapping, which the
        // kernel alone uses until `drop` takes it back.
        unsafe {
            let mut present: libc::stack_t = std::mem::zeroed();
            if libc::sigaltstack(ptr::null(), &mut present) != 0 || present.ss_flags & libc::SS_DISABLE == 0 {
                return None;
            }
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let memory = libc::mmap(ptr::null_mut(), HANDLER_STACK_BYTES, access, flags, -1, 0);
            if memory == libc::MAP_FAILED {
                return None;
            }
            let ours = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: HANDLER_STACK_BYTES };
            libc::sigaltstack(&ours, ptr::null_mut());
            Some(HandlerStack { memory })
        }
    }
}

impl Drop for HandlerStack {
    fn drop(&mut self) {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: the first call makes the kernel forget the memory, before it is unmapped.
        unsafe {
            libc::sigaltstack(&none, ptr::null_mut());
            libc::munmap(self.memory, HANDLER_STACK_BYTES);
        }
    }
}

/// The handler. It may interrupt any code, so it calls only write(2), abort(3) and the previous
/// handler.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo, and for SIGSEGV it has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    // SAFETY: `resume` (`thread.rs`) makes it non-null only while this OS thread is on that
    // stack, which keeps its control block alive.
    if let Some(control) = unsafe { current().as_ref() }
        && control.guards(address)
    {
        let mut kib = [0; 20];
        say(&[
            b"\nstack overflow in direct-style thread ",
            control.cold.name.as_bytes(),
            b" (stack of ",
            decimal(control.kib(), &mut kib),
            b" KiB)\n",
        ]);
        // SAFETY: `abort` has no precondition.
        unsafe { libc::abort() };
    }
    // SAFETY: `expect` has written `PREVIOUS` before it installed this handler. The earlier handler
    // is called with the arguments that its flags ask for, as the kernel would. For the default
    // action this handler is removed, and the fault comes again.
    unsafe {
        let previous = (*PREVIOUS.0.get()).assume_init_ref();
        match previous.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, previous, ptr::null_mut());
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                type Action = extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<usize, Action>(handler)(signal, info, context);
            }
            handler => std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
        }
    }
}

fn say(parts: &[&[u8]]) {
    for part in parts {
        // SAFETY: pointer and length are those of a slice.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
}

/// Writes a number without an allocation.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

//! [`launch`]: starts a program, and does not wait until the kernel has loaded it.
//!
//! `process/launcher.rs` makes the [`Orders`] of a child and calls [`launch`]. `process.rs` keeps
//! the orders until it has seen the child's end.
//!
//! The calls of the C library, `posix_spawn` among them, stop the calling OS thread until the child
//! has loaded its program, so each program costs that OS thread one more switch. Here the child
//! also uses the memory of this process until then, and this process goes on meanwhile.
//!
//! ```text
//!     this process                          child
//!     orders are written
//!     all signals are blocked
//!     clone3 ────────────────────────────▶  descriptors 0, 1 and 2
//!     signals are as before                 a process group of its own, a directory
//!     goes on                               SIGPIPE as it was before Rust, signals as before
//!                                           execve: the program has a memory of its own
//!                                           or: the error is left in the orders, exit(127)
//!     waitpid says that it has ended
//!     orders are freed
//! ```
//!
//! # Why the child may use the memory
//! 1. The child runs no code but the instructions in `clone`, up to the label. They use no stack,
//!    no variable of an OS thread (as `errno`), no lock, and call no function.
//! 2. They read the orders, which this process does not change after `clone3`. It frees them after
//!    `waitpid` has said that the child has ended, and otherwise never. So a child that is slow
//!    finds them.
//! 3. They write one word, [`Orders::error`], which is atomic.
//! 4. No signal handler of this process runs in the child. All signals are blocked at `clone3`, and
//!    its flag `CLONE_CLEAR_SIGHAND` has taken the handlers off before the child unblocks them.

use super::Call;
use super::gate::{is_simulated, through};
use rustix::io::{Errno, Result};
use rustix::process::Pid;
use std::ffi::c_char;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// `CLONE_CLEAR_SIGHAND`: the child's signals have the default action, where they had a handler.
/// The constant of the crate `libc` is too narrow.
const CLEAR_SIGHAND: u64 = 1 << 32;

/// A list of strings as the kernel reads it: an array of pointers, with a null pointer at its end.
#[derive(Debug)]
pub(crate) struct Strings {
    /// The strings, each with a zero at its end.
    _text: Box<[u8]>,
    pointers: Box<[*const c_char]>,
}

// SAFETY: the pointers lead to `_text`, which belongs to this value, moves with no move of it, and
// is never changed.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    /// # Errors
    /// `InvalidInput` if a string has a zero within.
    pub(crate) fn new<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone) -> io::Result<Strings> {
        let length = strings.clone().map(|string| string.len() + 1).sum();
        let mut text = Vec::with_capacity(length);
        let mut starts = Vec::new();
        for string in strings {
            if string.contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a string has a zero within"));
            }
            starts.push(text.len());
            text.extend_from_slice(string);
            text.push(0);
        }
        let text = text.into_boxed_slice();
        let pointers = starts.iter().map(|start| text[*start..].as_ptr().cast());
        let pointers = pointers.chain([ptr::null()]).collect();
        Ok(Strings { _text: text, pointers })
    }
}

/// All that a child reads before it is another program.
#[repr(C)]
pub(crate) struct Orders {
    input: i32,
    output: i32,
    error_output: i32,
    /// The directory that the child begins in; null for that of this process.
    directory: *const c_char,
    /// The paths of the program, of which the first that is there is loaded.
    paths: *const *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    /// A `sigaction` of the kernel: the default action.
    action: [u64; 4],
    /// The blocked signals of the OS thread that starts the child.
    mask: libc::sigset_t,
    /// Why the program was not loaded, as a number of the system; 0 if it was.
    error: AtomicI32,
    _strings: [Arc<Strings>; 3],
    _directory: Option<Arc<Strings>>,
}

// SAFETY: the pointers lead to the arrays in `_strings` and to the text in `_directory`, which are
// never changed. The other fields are plain numbers, and the only field that changes is atomic.
unsafe impl Send for Orders {}
// SAFETY: as above.
unsafe impl Sync for Orders {}

impl Orders {
    /// Orders to load the first of `paths` that is there.
    pub(crate) fn new(
        paths: Arc<Strings>,
        arguments: Arc<Strings>,
        environment: Arc<Strings>,
    ) -> Box<Orders> {
        // SAFETY: a `sigset_t` is an array of integers.
        let mask = unsafe { MaybeUninit::zeroed().assume_init() };
        Box::new(Orders {
            input: -1,
            output: -1,
            error_output: -1,
            directory: ptr::null(),
            paths: paths.pointers.as_ptr(),
            arguments: arguments.pointers.as_ptr(),
            environment: environment.pointers.as_ptr(),
            action: [0; 4],
            mask,
            error: AtomicI32::new(0),
            _strings: [paths, arguments, environment],
            _directory: None,
        })
    }

    /// Sets the directory in which the child begins: the first string of `directory`.
    pub(crate) fn begin_in(&mut self, directory: Arc<Strings>) {
        self.directory = directory.pointers[0];
        self._directory = Some(directory);
    }

    /// Why the program was not loaded. It is known when the child has ended.
    pub(crate) fn error(&self) -> Option<Errno> {
        let error = self.error.load(Ordering::Acquire);
        (error != 0).then(|| Errno::from_raw_os_error(error))
    }
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").field("error", &self.error).finish_non_exhaustive()
    }
}

/// Starts a child that loads a program, with these descriptors as its standard streams, and in a
/// process group of its own. SIGPIPE ends it, because that is the default action, which Rust's
/// runtime has changed in this process. No other signal has a handler.
///
/// The caller keeps the orders until the child has ended.
///
/// # Errors
/// Those of `clone3`: `ENOSYS` and `EINVAL` where the kernel, a sandbox or this library does not
/// know it. `OPNOTSUPP` in a simulation.
pub(crate) fn launch(orders: &mut Box<Orders>, streams: [BorrowedFd<'_>; 3]) -> Result<Pid> {
    if is_simulated() {
        return Err(Errno::OPNOTSUPP);
    }
    through(Call::Spawn, |_| {
        [orders.input, orders.output, orders.error_output] = streams.map(|stream| stream.as_raw_fd());
        let mut all = MaybeUninit::uninit();
        // SAFETY: the pointers are valid, and `sigfillset` writes all of the set.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), &raw mut orders.mask);
        }
        let cloned = clone(orders);
        // SAFETY: the pointer is valid, and `pthread_sigmask` has written the set above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const orders.mask, ptr::null_mut()) };
        cloned
    })
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn clone(orders: &Orders) -> Result<Pid> {
    use std::mem::{offset_of, size_of};
    // SAFETY: all fields are integers, for which 0 is a value.
    let mut arguments: libc::clone_args = unsafe { MaybeUninit::zeroed().assume_init() };
    // Without a stack of its own the child has this OS thread's, which it does not touch.
    arguments.flags = libc::CLONE_VM as u64 | CLEAR_SIGHAND;
    arguments.exit_signal = libc::SIGCHLD as u64;
    let result: isize;
    // SAFETY: in this process, the block is the system call `clone3`, which reads `arguments` and
    // changes the three registers that are named. The child runs the lines up to the label 2, and
    // never leaves them. It uses no stack, and the system calls that it makes read `orders` and the
    // strings, which live until the child's end by the contract of `launch`. It writes one word,
    // the atomic `error`.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov edi, [r12 + {input}]",
            "xor esi, esi",
            "mov eax, {dup2}",
            "syscall",
            "test eax, eax",
            "js 4f",
            "mov edi, [r12 + {output}]",
            "mov esi, 1",
            "mov eax, {dup2}",
            "syscall",
            "test eax, eax",
            "js 4f",
            "mov edi, [r12 + {error_output}]",
            "mov esi, 2",
            "mov eax, {dup2}",
            "syscall",
            "test eax, eax",
            "js 4f",
            "xor edi, edi",
            "xor esi, esi",
            "mov eax, {setpgid}",
            "syscall",
            "mov rdi, [r12 + {directory}]",
            "test rdi, rdi",
            "jz 8f",
            "mov eax, {chdir}",
            "syscall",
            "test eax, eax",
            "js 4f",
            "8:",
            "mov edi, {pipe}",
            "lea rsi, [r12 + {action}]",
            "xor edx, edx",
            "mov r10d, 8",
            "mov eax, {sigaction}",
            "syscall",
            "mov edi, {set_mask}",
            "lea rsi, [r12 + {mask}]",
            "xor edx, edx",
            "mov r10d, 8",
            "mov eax, {sigprocmask}",
            "syscall",
            "mov ebx, -{noent}",
            "mov r13, [r12 + {paths}]",
            // The next path, if this one leads to no program.
            "3:",
            "mov rdi, [r13]",
            "test rdi, rdi",
            "jz 5f",
            "add r13, 8",
            "mov rsi, [r12 + {arguments}]",
            "mov rdx, [r12 + {environment}]",
            "mov eax, {execve}",
            "syscall",
            "cmp eax, -{noent}",
            "je 6f",
            "cmp eax, -{notdir}",
            "je 6f",
            "cmp eax, -{acces}",
            "jne 4f",
            "6:",
            "mov ebx, eax",
            "jmp 3b",
            "5:",
            "mov eax, ebx",
            "4:",
            "neg eax",
            "mov [r12 + {error}], eax",
            "7:",
            "mov edi, 127",
            "mov eax, {exit}",
            "syscall",
            "jmp 7b",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") &raw const arguments,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") ptr::from_ref(orders),
            lateout("rcx") _,
            lateout("r11") _,
            input = const offset_of!(Orders, input),
            output = const offset_of!(Orders, output),
            error_output = const offset_of!(Orders, error_output),
            directory = const offset_of!(Orders, directory),
            paths = const offset_of!(Orders, paths),
            arguments = const offset_of!(Orders, arguments),
            environment = const offset_of!(Orders, environment),
            action = const offset_of!(Orders, action),
            mask = const offset_of!(Orders, mask),
            error = const offset_of!(Orders, error),
            dup2 = const libc::SYS_dup2,
            setpgid = const libc::SYS_setpgid,
            chdir = const libc::SYS_chdir,
            sigaction = const libc::SYS_rt_sigaction,
            sigprocmask = const libc::SYS_rt_sigprocmask,
            execve = const libc::SYS_execve,
            exit = const libc::SYS_exit_group,
            pipe = const libc::SIGPIPE,
            set_mask = const libc::SIG_SETMASK,
            noent = const libc::ENOENT,
            notdir = const libc::ENOTDIR,
            acces = const libc::EACCES,
            options(nostack),
        );
    }
    match i32::try_from(result).ok().and_then(Pid::from_raw) {
        Some(child) if result > 0 => Ok(child),
        _ => Err(Errno::from_raw_os_error((-result) as i32)),
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn clone(_: &Orders) -> Result<Pid> {
    Err(Errno::NOSYS)
}

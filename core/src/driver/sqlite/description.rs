//! Locks that belong to an open file and not to the process.
//!
//! SQLite locks by `fcntl`, and POSIX drops all such locks of a process on a file as soon as the process closes that file
//! anywhere: when something in it copies the file, or another SQLite library (Python's, Node's) opens it and leaves. That
//! library also sees no lock of ours, believes to be alone and deletes the log under us. Linux has the same locks for an
//! open file description: nothing but that open file itself ends them, and they keep out whatever else the process does.
//! SQLite lets its calls of the system be replaced, and with that the ones of the files we open take these locks. They exclude
//! the POSIX locks of everybody else as before.
//!
//! Elsewhere than on Linux nothing is replaced.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use self::linux::opening;

/// Files that are opened while the answer lives are opened as usual.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn opening() {}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "SQLite's table of system calls is an interface of C")]
mod linux {
    use std::cell::Cell;
    use std::ffi::{c_char, c_int, c_uint, c_void};
    use std::marker::PhantomData;
    use std::mem::transmute;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use rusqlite::ffi::{sqlite3_syscall_ptr, sqlite3_vfs_find};

    /// One bit for each file descriptor that SQLite has opened for us. One past the end takes POSIX locks.
    static OURS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
    static REPLACED: AtomicBool = AtomicBool::new(false);

    thread_local! {
        static OPENING: Cell<bool> = const { Cell::new(false) };
    }

    /// The files that this thread has SQLite open are ours, until this is dropped.
    pub(in super::super) struct Opening(PhantomData<*const ()>);

    /// From now on what SQLite opens in this thread is ours. Other files of the program are left as they are.
    pub(in super::super) fn opening() -> Opening {
        if !REPLACED.load(Relaxed) {
            replace();
            REPLACED.store(true, Relaxed);
        }
        OPENING.set(true);
        Opening(PhantomData)
    }

    impl Drop for Opening {
        fn drop(&mut self) {
            OPENING.set(false);
        }
    }

    /// Done twice it does no harm: so no lock is needed, which a fork could copy while it is held.
    fn replace() {
        type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
        type Control = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;
        // SAFETY: the file system named "unix" is SQLite's own and never goes away; a null would be handled. Its table calls
        // what is put there by the types above. `fcntl` it calls as a function with variable arguments: on these
        // processors the third one, a pointer or a number, comes in the same register as one that is named.
        unsafe {
            let system = sqlite3_vfs_find(c"unix".as_ptr());
            let Some(set) = system.as_ref().and_then(|system| system.xSetSystemCall) else {
                return;
            };
            // This one first: what it finds is not ours yet.
            let control: sqlite3_syscall_ptr =
                Some(transmute::<Control, unsafe extern "C" fn()>(control));
            set(system, c"fcntl".as_ptr(), control);
            let open: sqlite3_syscall_ptr = Some(transmute::<Open, unsafe extern "C" fn()>(open));
            set(system, c"open".as_ptr(), open);
        }
    }

    fn bit(file: c_int) -> Option<(&'static AtomicU64, u64)> {
        let file = usize::try_from(file).ok()?;
        Some((OURS.get(file / 64)?, 1 << (file % 64)))
    }

    /// `open`, as SQLite calls it.
    unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
        // SAFETY: the arguments are SQLite's, which meant them for this very function.
        let file = unsafe { libc::open(path, flags, mode as c_uint) };
        if let Some((word, bit)) = bit(file) {
            if OPENING.get() && has_such_locks(file) {
                word.fetch_or(bit, Relaxed);
            } else {
                word.fetch_and(!bit, Relaxed);
            }
        }
        file
    }

    /// Whether this system, and this file's, has them.
    fn has_such_locks(file: c_int) -> bool {
        // SAFETY: all zero is a valid value, and the call reads and writes nothing else.
        unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = libc::F_RDLCK as _;
            libc::fcntl(file, libc::F_OFD_GETLK, &raw mut lock) == 0
        }
    }

    /// `fcntl`, as SQLite calls it.
    unsafe extern "C" fn control(file: c_int, command: c_int, argument: *mut c_void) -> c_int {
        let ours = || bit(file).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0);
        let command = match command {
            libc::F_SETLK if ours() => libc::F_OFD_SETLK,
            libc::F_SETLKW if ours() => libc::F_OFD_SETLKW,
            libc::F_GETLK if ours() => libc::F_OFD_GETLK,
            // SAFETY: the arguments are SQLite's, which meant them for this very function.
            other => return unsafe { libc::fcntl(file, other, argument) },
        };
        // SAFETY: with these commands the argument points to a lock of SQLite's, whose process has to be zero here.
        unsafe {
            (*argument.cast::<libc::flock>()).l_pid = 0;
            libc::fcntl(file, command, argument)
        }
    }
}

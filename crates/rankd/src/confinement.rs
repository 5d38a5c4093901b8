//! What the kernel keeps a process from that runs other people's code: the child that compiles plans in TypeScript.
//!
//! Plan code runs in an engine that has no host functions. This is for the day on which that engine has a hole: then the code finds
//! itself in a process that can compute, read files and answer, and nothing else. Where the kernel does not know how, the child runs
//! without it, and the server's log says so.

/// Takes from this process, for good, what compiling does not need. Gives what is in force, in words. Call it before any other
/// thread is started.
pub(crate) fn confine() -> String {
    let mut in_force = vec!["limits on memory and time".to_owned()];
    in_force.push(match rustix::thread::set_no_new_privs(true) {
        Ok(()) => "no new privileges".to_owned(),
        Err(error) => format!("new privileges (this kernel: {error})"),
    });
    in_force.push(match seccomp::filter() {
        Ok(()) => "a system call filter".to_owned(),
        Err(why) => format!("no system call filter ({why})"),
    });
    in_force.join(", ")
}

#[cfg(target_os = "linux")]
mod seccomp {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        apply_filter,
    };
    use std::collections::BTreeMap;

    /// What a process needs that computes, reads files, starts threads and ends. Everything else is as if this kernel did not have it.
    const ALLOWED: &[i64] = &[
        // Files.
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_lseek,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
        libc::SYS_getcwd,
        libc::SYS_fcntl,
        libc::SYS_ppoll,
        // Memory.
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        // Threads, signals to itself, time and the end.
        libc::SYS_futex,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_membarrier,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_prlimit64,
        libc::SYS_getrusage,
        libc::SYS_sysinfo,
        libc::SYS_uname,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Older calls that only this machine still has.
    #[cfg(target_arch = "x86_64")]
    const ALLOWED_HERE: &[i64] = &[libc::SYS_stat, libc::SYS_lstat, libc::SYS_readlink, libc::SYS_poll];
    #[cfg(not(target_arch = "x86_64"))]
    const ALLOWED_HERE: &[i64] = &[];

    /// Flags of `open` that could change a file.
    const OPEN_TO_CHANGE: i32 = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;

    pub(super) fn filter() -> Result<(), seccompiler::Error> {
        apply_filter(&program()?)
    }

    fn program() -> Result<BpfProgram, seccompiler::BackendError> {
        let only_if = |argument: u8, op: SeccompCmpOp, value: u64| {
            let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)?;
            SeccompRule::new(vec![condition])
        };
        let to_read = |argument| only_if(argument, SeccompCmpOp::MaskedEq(OPEN_TO_CHANGE as u64), 0);
        let thread = libc::CLONE_THREAD as u64;
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().chain(ALLOWED_HERE).map(|call| (*call, Vec::new())).collect();
        rules.insert(libc::SYS_openat, vec![to_read(2)?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![to_read(1)?]);
        // A thread, and no process. A newer call says which by way of memory that a filter cannot read; without it, this one is used.
        rules.insert(libc::SYS_clone, vec![only_if(0, SeccompCmpOp::MaskedEq(thread), thread)?]);
        rules.insert(libc::SYS_prctl, vec![only_if(0, SeccompCmpOp::Eq, libc::PR_SET_NAME as u64)?]);
        // Its own end, when memory runs out.
        rules.insert(libc::SYS_tgkill, vec![only_if(0, SeccompCmpOp::Eq, std::process::id().into())?]);
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Errno(libc::ENOSYS as u32),
            SeccompAction::Allow,
            std::env::consts::ARCH.try_into()?,
        )?;
        filter.try_into()
    }
}

#[cfg(not(target_os = "linux"))]
mod seccomp {
    pub(super) fn filter() -> std::io::Result<()> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "only Linux has one"))
    }
}

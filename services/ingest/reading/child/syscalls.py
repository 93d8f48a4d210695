"""Numbers of system calls, from the kernel's own tables (`arch/x86/entry/syscalls/syscall_64.tbl`,
`include/uapi/asm-generic/unistd.h`, which is that of aarch64). They are part of the kernel's interface and never change."""

from collections.abc import Mapping
from dataclasses import dataclass

FIRST_UNKNOWN = 463
"""Calls from this number on came after Linux 6.11, when these tables were read. On x86_64 it shuts out the calls of x32, too."""


@dataclass(frozen=True)
class Architecture:
    """`audit_id` is AUDIT_ARCH_* of linux/audit.h."""

    name: str
    audit_id: int
    numbers: Mapping[str, int]


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (entry.partition("=") for entry in text.split())}


_X86_64 = """
    access=21 brk=12 clock_getres=229 clock_gettime=228 clock_nanosleep=230 clone=56 clone3=435 close=3 close_range=436 dup=32
    dup2=33 dup3=292 exit=60 exit_group=231 faccessat=269 faccessat2=439 fadvise64=221 fcntl=72 fstat=5 fstatfs=138 futex=202
    get_robust_list=274 getcpu=309 getcwd=79 getdents64=217 getegid=108 geteuid=107 getgid=104 getgroups=115 getpid=39
    getppid=110 getpriority=140 getrandom=318 getrlimit=97 getrusage=98 gettid=186 gettimeofday=96 getuid=102 ioctl=16 kill=62
    lseek=8 lstat=6 madvise=28 membarrier=324 mincore=27 mmap=9 mprotect=10 mremap=25 munmap=11 nanosleep=35 newfstatat=262
    open=2 openat=257 openat2=437 poll=7 ppoll=271 prctl=157 pread64=17 prlimit64=302 pselect6=270 read=0 readlink=89
    readlinkat=267 readv=19 recvmsg=47 restart_syscall=219 rseq=334 rt_sigaction=13 rt_sigpending=127 rt_sigprocmask=14
    rt_sigreturn=15 sched_get_priority_max=146 sched_get_priority_min=147 sched_getaffinity=204 sched_getparam=143
    sched_getscheduler=145 sched_setaffinity=203 sched_yield=24 select=23 set_robust_list=273 set_tid_address=218
    setrlimit=160 sigaltstack=131 stat=4 statfs=137 statx=332 sysinfo=99 tgkill=234 time=201 times=100 uname=63 write=1
    writev=20
"""
_AARCH64 = """
    brk=214 clock_getres=114 clock_gettime=113 clock_nanosleep=115 clone=220 clone3=435 close=57 close_range=436 dup=23
    dup3=24 exit=93 exit_group=94 faccessat=48 faccessat2=439 fadvise64=223 fcntl=25 fstat=80 fstatfs=44 futex=98
    get_robust_list=100 getcpu=168 getcwd=17 getdents64=61 getegid=177 geteuid=175 getgid=176 getgroups=158 getpid=172
    getppid=173 getpriority=141 getrandom=278 getrlimit=163 getrusage=165 gettid=178 gettimeofday=169 getuid=174 ioctl=29
    kill=129 lseek=62 madvise=233 membarrier=283 mincore=232 mmap=222 mprotect=226 mremap=216 munmap=215 nanosleep=101
    newfstatat=79 openat=56 openat2=437 ppoll=73 prctl=167 pread64=67 prlimit64=261 pselect6=72 read=63 readlinkat=78 readv=65
    recvmsg=212 restart_syscall=128 rseq=293 rt_sigaction=134 rt_sigpending=136 rt_sigprocmask=135 rt_sigreturn=139
    sched_get_priority_max=125 sched_get_priority_min=126 sched_getaffinity=123 sched_getparam=121 sched_getscheduler=120
    sched_setaffinity=122 sched_yield=124 set_robust_list=99 set_tid_address=96 setrlimit=164 sigaltstack=132 statfs=43
    statx=291 sysinfo=179 tgkill=131 times=153 uname=160 write=64 writev=66
"""

ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0xC000003E, _table(_X86_64)),
    "aarch64": Architecture("aarch64", 0xC00000B7, _table(_AARCH64)),
}

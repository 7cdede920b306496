// Package prove checks whether walls hold, by trying to cross them.
//
// Call [Wall] or [Short], and [Helper] in main. They set up a scene outside the walls: files with
// secrets, files to overwrite, sockets that listen. Then the program runs itself behind the
// walls, where each attempt tries one way out, and inspects the scene afterwards.
//
// The attempts are few, so that they can be made before walls are used for the first time
// under their conditions ([Conditions]). There is at least one for each promise of a wall,
// and for each mechanism of the kernel that keeps it behind one of the walls:
//
//   - files outside are neither read nor changed (mount namespace; Landlock's rules), what
//     is read-only stays so (mount flags), no descriptor is inherited, no device is there:
//     read-file, overwrite-file, write-readable, descriptors, kernel-log
//   - git's files are intact (read-only mounts, or restored afterwards), also if their
//     directory is moved, and what must not exist does not (placeholders): git-config-write,
//     git-directory-move, missing-file-create
//   - caches are not changed (overlays), hidden files and directories and the sockets of
//     others are covered: cache-write, hidden-read, hidden-list, workspace-socket
//   - processes outside are neither seen, read nor signalled (process namespace; Landlock's
//     scopes), and variables do not come along: proc-prover-root, proc-prover-mem,
//     signal-prover, environment
//   - limits hold, and nothing outlives its command (resource limits, cgroups, the supervisor):
//     fork-bomb, memory-hog, daemon
//   - the kernel's other doors are shut (seccomp, no_new_privs, capabilities): mount-bind,
//     unshare-user, io-uring, session-keyring, terminal-input, new-privileges, capabilities
//   - the network is off but for the doors of the policy (network and IPC namespaces;
//     Landlock, seccomp): tcp, unix-path, unix-abstract, vsock, sysv-memory, door
//
// They suffice because what they look for on the user's machine is a mechanism that the
// kernel lacks, that the system denies or that hone did not put up: then every way through
// it is open, and one attempt shows it. Whether the mechanisms, once they are there, leave
// a way around them does not depend on the machine. That is what the tests try, with the
// table of all attempts in the folder table, which no program contains.
//
// An attempt that was stopped shows that this way is closed on this machine now.
// It does not show that there is no other way.
//
// Nothing outside the scene is changed. Attempts open the kernel's log but do not read it;
// they send no packet to other machines, and signal no process of others.
package prove

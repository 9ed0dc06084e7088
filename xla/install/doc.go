// Package install puts PJRT plugins, and implementations of MPI, on this machine and finds them again.
//
// What may be installed stands in plugins.tsv: wheels by exact name, size and SHA-256. A wheel is downloaded (or taken
// from a local file), checked, opened as a zip by this package alone, and the few files that are needed are written,
// synced, and read back. No code of a wheel runs.
//
// Under the root, each kind of plugin has a folder:
//
//	cpu/lock              held while something is installed
//	cpu/pjrt-2026.6.23-…/ the files of one version, never changed once they have this name
//	cpu/receipt.json      which version is the installed one, and the size, time, inode and digest of each of its files
//
// Writing the receipt is the only moment at which anything changes for a reader, and it is one rename: a process killed
// anywhere leaves the old plugin installed or the new one. Its other files are removed by the next installation.
package install

// Package install installs and finds PJRT plugins and MPI implementations.
//
// plugins.tsv lists wheels. Install downloads a wheel or takes a local file, verifies it, unzips the needed files,
// syncs them and reads them back. No code of a wheel runs.
//
// The root has a folder per kind of plugin:
//
//	cpu/lock              held during an installation
//	cpu/pjrt-2026.6.23-…/ the files of one version, never changed
//	cpu/receipt.json      the installed version, and each file's size, time, inode and digest
//
// Renaming the receipt switches versions: after a crash, the old or the new one is installed.
package install

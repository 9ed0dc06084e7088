// Package probe checks a PJRT plugin in a child process, which a damaged library may crash.
//
// The child is the program's own binary: for a reserved argv[0], an init function checks and exits before main.
package probe

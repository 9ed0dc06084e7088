// Package probe checks a PJRT plugin in a child process, so that a damaged library cannot crash the program.
//
// The child is the program's own binary. An init function sees a reserved argv[0], does the check and exits before
// main. Init functions of other packages may run in the child too.
package probe

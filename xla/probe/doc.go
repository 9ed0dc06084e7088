// Package probe finds out whether a PJRT plugin works, in a child process, so that a damaged library can never end the
// program that asks.
//
// The child is the program's own binary, started once more: a program that links this package needs no other file. Its
// init function sees a reserved argv[0], does the check in place of the program, and exits before main runs. Other
// packages' init functions may run in the child too.
package probe

package main

import (
	"testing"
)

// A module that works in the checkout alone is found: here by a file that git does not track.
func TestRelease_ofAnUntrackedFile(t *testing.T) {
	dir := checkout(t)
	write(t, dir, map[string]string{"part/.gitignore": "more.go\n", "part/more.go": "package part\n\nvar More = 1\n", "part/uses.go": "package part\n\nvar Uses = More\n"})
	commit(t, dir)
	_, err := run(t, dir, "v0.1.0")
	expect(t, err, "outside of the checkout: go build example.org/loop/part/...", "undefined: More")
}

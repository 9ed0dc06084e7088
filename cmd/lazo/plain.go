package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a file, a plugin or a server says is printed by these three alone: it cannot move the cursor, nor begin a line
// or a column that is not its own.

// plain is a text for a line: what cannot be printed is escaped, as in a string of Go.
func plain(text string) string { return escaped(text, "") }

// plainLines is a text of several lines, as errors and programs are.
func plainLines(text string) string { return escaped(strings.TrimSpace(text), "\n\t") }

func escaped(text, but string) string {
	hidden := func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) && !strings.ContainsRune(but, r) }
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if part := text[:n]; hidden(r) {
			quoted := strconv.Quote(part)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(part)
		}
		text = text[n:]
	}
	return b.String()
}

// word is a name among others, in quotes where it could be taken for more than one.
func word(name string) string {
	if name == "" || plain(name) != name || strings.ContainsAny(name, " =\"") {
		return strconv.Quote(name)
	}
	return name
}

// needFolder tells whether there is a folder of that name.
func needFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %q", dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%q is a file, expected a folder of checkpoints", dir)
	}
	return nil
}

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

// Output of files, plugins and servers passes through these functions: it must not move the cursor or start a line or
// column.

func plain(text string) string { return escaped(text, "") }

func plainLines(text string) string { return escaped(strings.TrimSpace(text), "\n\t") }

func escaped(text, but string) string {
	return escapedBy(text, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) && !strings.ContainsRune(but, r) })
}

func escapedBy(text string, hidden func(r rune) bool) string {
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

func word(name string) string {
	if name == "" || plain(name) != name || strings.ContainsAny(name, " =\"") {
		return strconv.Quote(name)
	}
	return name
}

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

// Package brackets matches brackets in HLO and StableHLO texts and splits their lists. It ignores brackets in strings.
package brackets

import (
	"fmt"
	"strconv"
	"strings"
)

// Nesting is the depth of brackets after a text, and whether it is in a string. The zero value is the start.
type Nesting struct {
	Depth   int // negative if more closed than opened
	Quoted  bool
	escaped bool
}

func (n *Nesting) Read(c byte) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.Quoted:
		n.Quoted, n.escaped = c != '"', c == '\\'
	case c == '"':
		n.Quoted = true
	case c == '(' || c == '{' || c == '[':
		n.Depth++
	case c == ')' || c == '}' || c == ']':
		n.Depth--
	}
}

func Closing(text string, opened int) (int, error) {
	var at Nesting
	for i := opened; i < len(text); i++ {
		if at.Read(text[i]); at.Depth == 0 && !at.Quoted {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%.40q: a bracket is not closed", text[opened:])
}

// Split splits at commas outside brackets and strings.
func Split(text string) ([]string, error) {
	var parts []string
	var at Nesting
	start := 0
	for i := 0; i < len(text); i++ {
		at.Read(text[i])
		switch {
		case at.Depth < 0:
			return nil, fmt.Errorf("%.60q: a bracket too many", text)
		case text[i] == ',' && at.Depth == 0 && !at.Quoted:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if at.Depth != 0 || at.Quoted {
		return nil, fmt.Errorf("%.60q: a bracket or a string is not closed", text)
	}
	return append(parts, strings.TrimSpace(text[start:])), nil
}

// Numbers parses "1,0", numbers from 0 up, optionally in brackets; "" is empty.
func Numbers(text string) ([]int, error) {
	text = strings.Trim(text, "{}[]() ")
	if text == "" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%.40q: expected numbers", text)
		}
		list = append(list, n)
	}
	return list, nil
}

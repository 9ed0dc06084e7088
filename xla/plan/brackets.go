package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// nesting is how deep in brackets a text is behind what was read of it, and whether it is in a string.
type nesting struct {
	depth           int
	quoted, escaped bool
}

func (n *nesting) read(c byte) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.quoted:
		n.quoted, n.escaped = c != '"', c == '\\'
	case c == '"':
		n.quoted = true
	case c == '(' || c == '{' || c == '[':
		n.depth++
	case c == ')' || c == '}' || c == ']':
		n.depth--
	}
}

// closing is where the bracket at a place is closed.
func closing(text string, opened int) (int, error) {
	var at nesting
	for i := opened; i < len(text); i++ {
		if at.read(text[i]); at.depth == 0 && !at.quoted {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%.40q: a bracket is not closed", text[opened:])
}

// split cuts at the commas that stand in no bracket and no string.
func split(text string) ([]string, error) {
	var parts []string
	var at nesting
	start := 0
	for i := 0; i < len(text); i++ {
		at.read(text[i])
		switch {
		case at.depth < 0:
			return nil, fmt.Errorf("%.60q: a bracket too many", text)
		case text[i] == ',' && at.depth == 0 && !at.quoted:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if at.depth != 0 || at.quoted {
		return nil, fmt.Errorf("%.60q: a bracket or a string is not closed", text)
	}
	return append(parts, strings.TrimSpace(text[start:])), nil
}

// numbers reads "1,0", which may stand in brackets; "" has none.
func numbers(text string) ([]int, error) {
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

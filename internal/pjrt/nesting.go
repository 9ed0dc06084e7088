package pjrt

import (
	"bytes"
	"fmt"
)

// docs/decisions/0025
const maxNesting = 256

func checkNesting(program []byte) error {
	if bytes.HasPrefix(program, []byte("ML\xefR")) {
		return nil
	}
	depth := 0
	for i := 0; i < len(program); i++ {
		switch program[i] {
		case '(', '[', '{', '<':
			if depth++; depth > maxNesting {
				return fmt.Errorf("pjrt: %w: line %d: brackets are nested more than %d deep, which overflows the compiler's stack: use functions instead of nested regions",
					ErrInvalidArgument, 1+bytes.Count(program[:i], []byte("\n")), maxNesting)
			}
		case ')', ']', '}':
			depth = max(depth-1, 0)
		case '>':
			if i > 0 && program[i-1] != '-' {
				depth = max(depth-1, 0)
			}
		case '"':
			for i++; i < len(program) && program[i] != '"'; i++ {
				if program[i] == '\\' {
					i++
				}
			}
		case '/':
			if i+1 < len(program) && program[i+1] == '/' {
				for i < len(program) && program[i] != '\n' {
					i++
				}
			}
		}
	}
	return nil
}

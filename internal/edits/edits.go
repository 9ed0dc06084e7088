// Package edits computes how similar names are, for suggestions in errors.
package edits

import "strings"

// Nearest returns the name with the fewest edits, or "" if none is near.
func Nearest(name string, names []string) string {
	plain := strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(name))
	best, least := "", max(2, len(plain)/3)+1
	for _, n := range names {
		if d := Distance(plain, strings.ToLower(n), least); d < least {
			best, least = n, d
		}
	}
	return best
}

// Distance returns how many bytes must be inserted, deleted or replaced to turn a into b (Levenshtein 1966). Above most
// it may be inexact.
func Distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1) // row[j]: from a's bytes so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// Package edits says how far two names are apart, for errors that guess which name was meant.
package edits

import "strings"

// Nearest is the name with the fewest edits, if these are few; "" if none is near.
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

// Distance is how many bytes must be put in, taken out or replaced to make b of a (Levenshtein 1966); beyond most it
// may be inexact.
func Distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1) // row[j]: from the bytes of a so far to b[:j]
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

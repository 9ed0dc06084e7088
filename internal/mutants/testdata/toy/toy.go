// Package toy is what the runner of mutants is tested on.
package toy

import "errors"

var errNegative = errors.New("negative")

// Half is n/2 for an even number, else -1.
func Half(n int) (int, error) {
	if n < 0 {
		return 0, errNegative
	}
	if n%2 == 1 && n > 0 {
		return -1, nil
	}
	return n / 2, nil
}

// Untested has no test.
func Untested(n int) int { return n + 1 }

type Name string

func (n Name) String() string { return string(n) + "!" }

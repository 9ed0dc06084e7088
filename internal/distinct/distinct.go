// Package distinct tells that names stand twice in a list, in the one way that package data and its readers do.
package distinct

import "fmt"

// Names returns an error unless each of n fields has a name of its own. of says what they are of: "of 3", "of the
// batch".
func Names(n int, of string, name func(i int) string) error {
	for i := range n {
		for j := range i {
			if name(i) == name(j) {
				return fmt.Errorf("fields %d and %d %s have the one name %q: give each a name of its own (data.Named)", j+1, i+1, of, name(i))
			}
		}
	}
	return nil
}

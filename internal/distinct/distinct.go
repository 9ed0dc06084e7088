// Package distinct finds duplicate names, for package data and its readers.
package distinct

import "fmt"

// Names returns an error unless the names of n fields differ. of is for messages: "of 3", "of the batch".
func Names(n int, of string, name func(i int) string) error {
	for i := range n {
		for j := range i {
			if name(i) == name(j) {
				return fmt.Errorf("fields %d and %d %s have the same name %q: give each its own name (data.Named)", j+1, i+1, of, name(i))
			}
		}
	}
	return nil
}

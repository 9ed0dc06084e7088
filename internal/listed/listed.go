// Package listed writes lists of names in messages, and finds duplicates in them.
package listed

import "fmt"

// Some returns the first ten names, and the number of the others.
func Some(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%q and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprintf("%q", names)
}

// Distinct returns an error unless the names of n fields differ. of is for messages: "of 3", "of the batch".
func Distinct(n int, of string, name func(i int) string) error {
	for i := range n {
		for j := range i {
			if name(i) == name(j) {
				return fmt.Errorf("fields %d and %d %s have the same name %q: give each its own name (data.Named)", j+1, i+1, of, name(i))
			}
		}
	}
	return nil
}

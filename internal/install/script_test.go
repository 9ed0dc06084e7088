package install

import (
	"strconv"
	"strings"
)

// row returns a wheel's line of plugins.tsv.
func (w Wheel) row() string {
	fields := []string{w.Kind, w.Platform, w.Package, w.Version, w.File, strconv.FormatInt(w.Size, 10), w.SHA256,
		strings.Join(w.Members, ","), w.Library, w.LibrarySHA256, w.API, w.Licence}
	for i := range fields {
		if fields[i] == "" {
			fields[i] = "-"
		}
	}
	return strings.Join(fields, "\t") + "\n"
}

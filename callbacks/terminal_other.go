//go:build !linux && !darwin

package callbacks

import "os"

// terminalColumns finds no terminals on these systems: the bar writes plain lines.
func terminalColumns(*os.File) (columns int, ok bool) { return 0, false }

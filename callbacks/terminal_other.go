//go:build !linux && !darwin

package callbacks

import "os"

// terminalColumns finds no terminal, so the bar writes plain lines.
func terminalColumns(*os.File) (columns int, ok bool) { return 0, false }

//go:build !linux && !darwin

package callbacks

import "os"

func terminalColumns(*os.File) (columns int, ok bool) { return 0, false }

//go:build !unix

package dist

import "net"

func inherited() net.Listener { return nil }

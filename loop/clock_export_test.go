package loop

import (
	"time"
	"unsafe"
)

// Jumped returns the elapsed of a run whose wall clock was set by this number of seconds since its start.
func Jumped(from Elapsed, seconds int64) Elapsed {
	c := newClock(from)
	// The first word of a time with a monotonic reading has the wall's seconds from bit 30 on; the test looks whether that
	// is so.
	*(*uint64)(unsafe.Pointer(&c.start)) -= uint64(seconds) << 30
	return c.at(from)
}

// JumpedWall returns a time whose wall clock was set by this number of seconds.
func JumpedWall(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}

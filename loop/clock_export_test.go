package loop

import (
	"time"
	"unsafe"
)

// Jumped is what a run has elapsed at once, where the clock on the wall was set by so many seconds since its start.
func Jumped(from Elapsed, seconds int64) Elapsed {
	c := newClock(from)
	// The first word of a time with a monotonic reading has the wall's seconds from bit 30 on; the test looks whether that
	// is so.
	*(*uint64)(unsafe.Pointer(&c.start)) -= uint64(seconds) << 30
	return c.at(from)
}

// JumpedWall is a time whose clock on the wall is set by so many seconds.
func JumpedWall(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}

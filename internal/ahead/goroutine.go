package ahead

import (
	"runtime"
	"strings"
)

// Here reports whether package data started the calling goroutine, to make batches ahead of a run.
func Here() bool { return running.Load() > 0 && startedBy("github.com/lazo-ml/lazo/data.") }

// Origin returns the numbers of the calling goroutine and its starter.
func Origin() (own, parent string) {
	text := make([]byte, 8<<10)
	n := runtime.Stack(text, false)
	for n == len(text) && n < 1<<20 {
		text = make([]byte, 2*n)
		n = runtime.Stack(text, false)
	}
	own, _, _ = strings.Cut(strings.TrimPrefix(string(text[:n]), "goroutine "), " ") // "goroutine 1 [running]:"
	_, start, _ := strings.Cut(string(text[:n]), "\ncreated by ")                    // "created by iter.Pull in goroutine 1"
	start, _, _ = strings.Cut(start, "\n")
	_, parent, _ = strings.Cut(start, " in goroutine ")
	return own, parent
}

// startedBy walks the whole stack in 1 to 4 microseconds, without allocation.
func startedBy(prefix string) bool {
	var stack [64]uintptr // the innermost call first
	first := uintptr(0)
	for skip := 0; ; skip += len(stack) {
		n := runtime.Callers(skip, stack[:])
		if n >= 2 {
			first = stack[n-2] // the last is runtime.goexit
		} else if n == 1 && skip > 0 {
			first = stack[len(stack)-1]
		}
		if n < len(stack) {
			break
		}
	}
	f := runtime.FuncForPC(first - 1)
	return f != nil && strings.HasPrefix(f.Name(), prefix)
}

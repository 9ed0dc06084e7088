package graphs

import (
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// Places finds the lines of the user's own code that call a program's operations. It keeps what it found, for an operation
// looks at some twenty frames; the zero value is ready. It is for one goroutine at a time.
type Places struct {
	parts bool // From is a border too
	known map[uintptr]string
	stack [64]uintptr
}

// What known has of a frame that is nobody's place.
const (
	ofLibrary = ""
	border    = "border" // a user's line has a colon
)

// Here is the innermost line of the user's own code that called Here's caller, as "package/file.go:12"; "" if there is none
// up to the nearest [Catch], beyond which nobody builds.
func (p *Places) Here() string { return p.find(3) }

func (p *Places) find(skip int) string {
	if p.known == nil {
		p.known = map[uintptr]string{}
	}
	for n := 0; ; n += len(p.stack) {
		found := runtime.Callers(skip+n, p.stack[:])
		for _, pc := range p.stack[:found] {
			place, known := p.known[pc]
			if !known {
				place = p.placeOf(pc)
				p.known[pc] = place
			}
			switch place {
			case ofLibrary:
			case border:
				return ""
			default:
				return place
			}
		}
		if found < len(p.stack) {
			return ""
		}
	}
}

// placeOf looks at one frame; where functions were inlined it is several.
func (p *Places) placeOf(pc uintptr) string {
	frames := runtime.CallersFrames([]uintptr{pc})
	for {
		f, more := frames.Next()
		switch {
		case f.Function == ownName+".Catch", p.parts && f.Function == ownName+".From":
			return border
		case f.Function != "" && (!isLibrary(f.Function) && !inLibrary(f.File) || strings.HasSuffix(f.File, "_test.go")):
			return short(f.File, f.Line)
		case !more:
			return ofLibrary
		}
	}
}

// lineOf is where a function is written.
func lineOf(function any) string {
	v := reflect.ValueOf(function)
	if v.Kind() != reflect.Func || v.IsNil() {
		return ""
	}
	return short(runtime.FuncForPC(v.Pointer()).FileLine(v.Pointer()))
}

// short keeps the last folder of a file's path: enough to find it, and the same on every machine.
func short(file string, line int) string {
	file = filepath.ToSlash(file)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(file)), path.Base(file)), line)
}

const (
	module  = "github.com/lazo-ml/lazo/"
	ownName = module + "internal/graphs"
)

// root is the folder of lazo's own files, as the compiler wrote it down.
var root = func() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(filepath.ToSlash(file), "internal/graphs/place.go")
}()

// inLibrary tells a file that a user did not write. Where the compiler put a library's function into the one that calls it, a closure of
// it has the caller's name.
func inLibrary(file string) bool {
	file = filepath.ToSlash(file)
	if rest, own := strings.CutPrefix(file, root); own && root != "" {
		return isLibrary(module + rest)
	}
	return strings.Contains(file, "github.com/gomlx/")
}

// isLibrary tells the code that a user did not write. Programs inside lazo's own module (examples, bench) count as
// users.
func isLibrary(function string) bool {
	for _, prefix := range []string{
		"github.com/gomlx/", "runtime.", "reflect.", "iter.", "maps.", "slices.", "sort.", "strings.", "sync.", "sync/", "internal/", "testing.",
	} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	rest, own := strings.CutPrefix(function, module)
	if !own {
		return false
	}
	return !strings.HasPrefix(rest, "examples/") && !strings.HasPrefix(rest, "bench") && !strings.HasPrefix(rest, "cmd/")
}

package cost

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var sections = map[string]bool{"FileNames": true, "FunctionNames": true, "FileLocations": true, "StackFrames": true}

// Newer XLA writes tables, older XLA the file and the line.
type places struct {
	files     map[int]string
	locations map[int]place
	frames    map[int]int
}

type place struct {
	file string
	line int
}

func newPlaces() places {
	return places{files: map[int]string{}, locations: map[int]place{}, frames: map[int]int{}}
}

var (
	filePattern     = regexp.MustCompile(`^(\d+) "(.*)"$`)
	locationPattern = regexp.MustCompile(`^(\d+) \{.*\bfile_name_id=(\d+)\b.*\bline=(\d+)\b`)
	framePattern    = regexp.MustCompile(`^(\d+) \{.*\bfile_location_id=(\d+)\b`)
	framed          = regexp.MustCompile(`\bstack_frame_id=(\d+)`)
	sourceFile      = regexp.MustCompile(`\bsource_file="([^"]*)"`)
	sourceLine      = regexp.MustCompile(`\bsource_line=(\d+)`)
	ownName         = regexp.MustCompile(`^program:(\d+)`)
	sourceName      = regexp.MustCompile(`\bop_name="([^"]*)"`)
)

func (r *reader) table(section string) error {
	for {
		line, found := r.statement(false)
		if !found || line == "" {
			return nil
		}
		var match []string
		switch section {
		case "FileNames":
			match = filePattern.FindStringSubmatch(line)
		case "FileLocations":
			match = locationPattern.FindStringSubmatch(line)
		case "StackFrames":
			match = framePattern.FindStringSubmatch(line)
		default:
			continue
		}
		if match == nil {
			return fmt.Errorf("%.60q: expected a row of %s", line, section)
		}
		key, err := strconv.Atoi(match[1])
		if err != nil {
			return err
		}
		switch section {
		case "FileNames":
			r.m.places.files[key] = match[2]
		case "FileLocations":
			file, err := strconv.Atoi(match[2])
			if err != nil {
				return err
			}
			at, err := strconv.Atoi(match[3])
			if err != nil {
				return err
			}
			r.m.places.locations[key] = place{r.m.places.files[file], at}
		case "StackFrames":
			if r.m.places.frames[key], err = strconv.Atoi(match[2]); err != nil {
				return err
			}
		}
	}
}

func (p places) of(i *instruction) (at place, name string) {
	metadata := i.attributes["metadata"]
	if metadata == "" {
		return place{}, ""
	}
	if n := sourceName.FindStringSubmatch(metadata); n != nil {
		name = n[1]
	}
	if f := framed.FindStringSubmatch(metadata); f != nil {
		if frame, err := strconv.Atoi(f[1]); err == nil {
			at = p.locations[p.frames[frame]]
		}
	}
	if f := sourceFile.FindStringSubmatch(metadata); f != nil {
		at.file = f[1]
	}
	if l := sourceLine.FindStringSubmatch(metadata); l != nil {
		at.line, _ = strconv.Atoi(l[1]) // a number too long for an int is no line
	}
	if own := ownName.FindStringSubmatch(name); own != nil { // plan.Step's name in a partitioned program
		name = ""
		if at.line == 0 {
			at.line, _ = strconv.Atoi(own[1])
		}
	}
	return at, name
}

// XLA writes "-" for the StableHLO program.
func (p place) String() string {
	switch {
	case p.line == 0:
		return ""
	case p.file == "" || p.file == "-":
		return fmt.Sprintf("program:%d", p.line)
	}
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(p.file), "./"), p.line)
}

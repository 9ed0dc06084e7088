package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (f *Folder) compare(start *resumption, c *Checkpoint, now any) error {
	text, err := encodeSection(now)
	if err != nil {
		return fmt.Errorf("option Same: %w", err)
	}
	var saved json.RawMessage
	switch err := c.Section(sameSection, &saved); {
	case errors.Is(err, ErrNoSection):
		start.differences = append(start.differences, Difference{What: "Same", Saved: "not there", Now: textOf(map[string]json.RawMessage{"": text}, "")})
		return nil
	case err != nil:
		return err
	}
	if list := different(saved, text); len(list) > 0 {
		return fmt.Errorf("the run was saved with other settings: %s; give it the same ones, or begin in another folder", strings.Join(list, ", "))
	}
	return nil
}

func different(saved, now json.RawMessage) (list []string) {
	before, after := fields(saved), fields(now)
	add := func(name string) {
		if a, b := textOf(before, name), textOf(after, name); a != b {
			list = append(list, strings.TrimPrefix(fmt.Sprintf("%s was %s and is %s", name, a, b), " "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, both := before[name]; !both {
			add(name)
		}
	}
	return list
}

func fields(text json.RawMessage) (all map[string]json.RawMessage) {
	if json.Unmarshal(text, &all) != nil || all == nil {
		return map[string]json.RawMessage{"": text}
	}
	return all
}

func textOf(fields map[string]json.RawMessage, name string) string {
	text, ok := fields[name]
	if !ok {
		return "not there"
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return string(text)
	}
	return b.String()
}

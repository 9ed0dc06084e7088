package runs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

type Search struct {
	Method string   `json:"method"`
	Entry  string   `json:"entry"`
	Best   string   `json:"best"`
	Names  []string `json:"names"`
	// Trials are the ended ones, the best first, then those without a value, and those in progress.
	Trials     []Trial      `json:"trials"`
	Importance []Importance `json:"importance"`
}

type Trial struct {
	Number     int               `json:"number"`
	Parameters map[string]string `json:"parameters"`
	Value      *float64          `json:"value"`
	Epochs     int               `json:"epochs"`
	Failed     string            `json:"failed"`
	Pruned     bool              `json:"pruned"`
	Ended      bool              `json:"ended"`
}

// Importance is the share of the variance of the trials' ranks that groups of a parameter's values explain, from 0 to
// 1: Kruskal and Wallis's H as eta squared, (H-k+1)/(n-k) for n trials in k groups (Tomczak and Tomczak, 2014). Numbers
// of more than six values are in four groups of equally many trials.
type Importance struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

const (
	planFile     = "search.json"
	mostOfRecord = 16 << 20
)

var trialForm = regexp.MustCompile(`^trial-\d{4,}-(drawn|\d+)\.json$`)

func readSearch(dir string, known map[string]trial) (*Search, error) {
	var of struct {
		Settings []struct{ Name, Value string }
	}
	if err := readSealed(filepath.Join(dir, planFile), &of); err != nil {
		return nil, err
	}
	s := &Search{Trials: []Trial{}, Importance: []Importance{}, Names: []string{}}
	for _, set := range of.Settings {
		switch set.Name {
		case "Method":
			s.Method = set.Value
		case "Entry":
			s.Entry = set.Value
		case "Direction":
			s.Best = set.Value
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	newest := map[int]Trial{}
	var bad error
	for _, e := range entries { // the rungs in order, after them what is drawn
		m := trialForm.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		one, read := known[e.Name()]
		if !read {
			if err := readSealed(filepath.Join(dir, e.Name()), &one); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				bad = errors.Join(bad, err)
				continue
			}
			known[e.Name()] = one
		}
		t := one.trial(m[1] != "drawn")
		if before, has := newest[t.Number]; !has || t.Ended && t.Epochs >= before.Epochs {
			newest[t.Number] = t
		}
	}
	names := map[string]bool{}
	for _, t := range newest {
		s.Trials = append(s.Trials, t)
		for name := range t.Parameters {
			names[name] = true
		}
	}
	s.Names = slices.AppendSeq(s.Names, maps.Keys(names))
	slices.Sort(s.Names)
	s.sort()
	for _, name := range s.Names {
		s.Importance = append(s.Importance, Importance{name, s.importance(name)})
	}
	slices.SortStableFunc(s.Importance, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return s, bad
}

type trial struct {
	Trial      int
	Parameters map[string]string
	Value      float64
	Epochs     int
	Failed     string
	Pruned     bool
}

func (t trial) trial(ended bool) Trial {
	one := Trial{Number: t.Trial, Parameters: t.Parameters, Epochs: t.Epochs, Failed: t.Failed, Pruned: t.Pruned, Ended: ended}
	if ended && t.Failed == "" {
		one.Value = &t.Value
	}
	return one
}

func (s *Search) sort() {
	mode := loop.Lowest
	if s.Best == loop.Highest.String() {
		mode = loop.Highest
	}
	rank := func(t Trial) int {
		switch {
		case t.Value != nil:
			return 0
		case t.Ended:
			return 1
		}
		return 2
	}
	slices.SortFunc(s.Trials, func(a, b Trial) int {
		if c := cmp.Compare(rank(a), rank(b)); c != 0 {
			return c
		}
		if a.Value != nil && b.Value != nil && *a.Value != *b.Value {
			if better.Than(mode, *a.Value, *b.Value, 0) {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Number, b.Number)
	})
}

const (
	mostGroups = 6
	quantiles  = 4
)

func (s *Search) importance(name string) float64 {
	type of struct {
		text        string
		x           float64
		value, rank float64
	}
	var all []of
	numeric, distinct := true, map[string]bool{}
	for _, t := range s.Trials {
		if text, has := t.Parameters[name]; has && t.Value != nil {
			x, err := strconv.ParseFloat(text, 64)
			numeric = numeric && err == nil
			distinct[text] = true
			all = append(all, of{text: text, x: x, value: *t.Value})
		}
	}
	n := len(all)
	slices.SortStableFunc(all, func(a, b of) int { return cmp.Compare(a.value, b.value) })
	ties := 0.0
	for i := 0; i < n; {
		end := i + 1
		for end < n && all[end].value == all[i].value {
			end++
		}
		for k := i; k < end; k++ {
			all[k].rank = float64(i+end+1) / 2
		}
		same := float64(end - i)
		ties += same*same*same - same
		i = end
	}
	groups := map[string][]float64{}
	if numeric && len(distinct) > mostGroups {
		slices.SortStableFunc(all, func(a, b of) int { return cmp.Compare(a.x, b.x) })
		for i, o := range all {
			groups[strconv.Itoa(i*quantiles/n)] = append(groups[strconv.Itoa(i*quantiles/n)], o.rank)
		}
	} else {
		for _, o := range all {
			groups[o.text] = append(groups[o.text], o.rank)
		}
	}
	k := len(groups)
	correction := 1 - ties/(float64(n)*float64(n)*float64(n)-float64(n))
	if k < 2 || n <= k || correction <= 0 {
		return 0
	}
	h := 0.0
	for _, ranks := range groups {
		sum := 0.0
		for _, r := range ranks {
			sum += r
		}
		h += sum * sum / float64(len(ranks))
	}
	h = (12/(float64(n)*float64(n+1))*h - 3*float64(n+1)) / correction
	return math.Max(0, math.Min(1, (h-float64(k)+1)/float64(n-k)))
}

func readSealed(path string, into any) error {
	text, err := regular.Read(path, mostOfRecord)
	if err != nil {
		return err
	}
	var sealed struct {
		CRC32C string          `json:"crc32c"`
		Record json.RawMessage `json:"record"`
	}
	if err = json.Unmarshal(text, &sealed); err == nil {
		if sum := safetensors.Checksum(0).Update(sealed.Record).String(); sum != sealed.CRC32C {
			err = fmt.Errorf("%w: the record has %s, expected %q", safetensors.ErrChecksum, sum, sealed.CRC32C)
		}
	}
	if err == nil {
		err = json.Unmarshal(sealed.Record, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

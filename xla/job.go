package xla

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/joined"
)

// Job is a job of several processes, as dist.Join returns. All ranks call Agree, EachSame, Broadcast and AllGather in
// one order. Its own Store is that of [WithStore] by default.
type Job interface {
	Store
	Rank() int
	Size() int
	// Agree sets each word to its maximum over all ranks.
	Agree(words []int64) error
	// EachSame reports for each number whether all ranks pass the same, except for its sign bit; what is for messages.
	EachSame(what string, numbers ...int64) (same []bool, err error)
	// Broadcast returns rank 0's data, AllGather all ranks' by rank, on all ranks.
	Broadcast(data []byte) ([]byte, error)
	AllGather(data []byte) ([][]byte, error)
	// Busy announces a phase of up to limit, which done ends.
	Busy(doing string, limit time.Duration) (done func())
	// Handlers are the C functions, by name, with which a CPU's programs exchange values; none if they cannot. Rewrite
	// turns a serialized HloModuleProto with XLA's collectives into one that calls them.
	Handlers() map[string]unsafe.Pointer
	Rewrite(module []byte) ([]byte, error)
}

// Store keeps small values that a job's processes exchange: see dist.Store.
type Store interface {
	Put(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	TryGet(ctx context.Context, key string) ([]byte, error)
}

func sameOnRanks(job Job, what, text string, key programKey) error {
	equal, err := job.EachSame(what, int64(binary.LittleEndian.Uint64(key[:])))
	if err != nil || equal[0] {
		return err
	}
	return disagree(job, what, text)
}

func disagree(job Job, what, text string) error {
	zero, err := job.Broadcast([]byte(text))
	if err != nil {
		return err
	}
	if text != string(zero) {
		what += ", " + firstDifference(string(zero), text)
	}
	all, err := job.AllGather([]byte(what))
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for rank, other := range all {
		if slices.ContainsFunc(all[:rank], func(said []byte) bool { return bytes.Equal(said, other) }) {
			continue
		}
		ranks := fmt.Sprint("rank ", rank)
		for also := rank + 1; also < len(all); also++ {
			if bytes.Equal(all[also], other) {
				ranks = strings.Replace(ranks, "rank ", "ranks ", 1) + fmt.Sprint(", ", also)
			}
		}
		fmt.Fprintf(&list, "\n\t%s: %s", ranks, other)
	}
	return fmt.Errorf("%w: their next operations differ:%s", joined.ErrDisagree, list.String())
}

func firstDifference(zero, own string) string {
	a, b := strings.Split(zero, "\n"), strings.Split(own, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			ours, theirs := partings(strings.TrimSpace(b[i]), strings.TrimSpace(a[i]))
			return fmt.Sprintf("line %d of the program is %s, that of rank 0 %s", i+1, ours, theirs)
		}
	}
	return fmt.Sprintf("the program has %d lines, that of rank 0 %d", len(b), len(a))
}

// Characters before the difference and in total.
const (
	beforeParting = 60
	atParting     = 200
)

func partings(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	from := max(0, same-beforeParting)
	quoted := func(r []rune) string {
		to := min(len(r), from+atParting)
		text := strconv.Quote(string(r[from:to]))
		if from > 0 {
			text = "…" + text
		}
		if to < len(r) {
			text += "…"
		}
		return text
	}
	return quoted(x), quoted(y)
}

func unlike(job Job, x joined.Alike) error {
	type part struct {
		joined.Part
		Sum int64
	}
	own := make([]part, len(x.Sums))
	for i, named := range x.Parts() {
		own[i] = part{named, x.Sums[i]}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all, err := job.AllGather(text)
	if err != nil {
		return err
	}
	ranks := make([][]part, len(all))
	for r := range all {
		if err := json.Unmarshal(all[r], &ranks[r]); err != nil || len(ranks[r]) != len(own) {
			return fmt.Errorf("%w: rank %d compares %d parts of it, this one %d (%v)", x.Err, r, len(ranks[r]), len(own), err)
		}
	}
	var said []string
	for i, zero := range ranks[0] {
		var others []string
		has := ""
		for r := range ranks {
			if other := ranks[r][i]; other.Sum != zero.Sum {
				others = append(others, fmt.Sprint(r))
				if has == "" && other.Is != "" {
					has = fmt.Sprintf(" (rank %d has %s, rank 0 %s)", r, other.Is, zero.Is)
				}
			}
		}
		switch {
		case len(others) == 1:
			said = append(said, fmt.Sprintf("rank %s differs from rank 0 in %s%s", others[0], zero.Name, has))
		case len(others) > 1:
			said = append(said, fmt.Sprintf("ranks %s differ from rank 0 in %s%s", strings.Join(others, ", "), zero.Name, has))
		}
	}
	return fmt.Errorf("%w: %s", x.Err, strings.Join(said, "; "))
}

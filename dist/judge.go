package dist

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

type view struct {
	beat beat
	seen time.Time
	left bool
	// error is why its program ends. Its beat then has the last calls and exchanges.
	error   string
	leaving time.Time
}

// slowest is the lowest plausible rate of a joined exchange, in bytes per second.
const slowest = 10e6

// judge returns the failure of a rank that keeps others waiting longer than allowed, or nil. This process's naps, and
// waits before pardon, when a rank was in an announced phase (busy), do not count. If allowed is the deadline, the
// job ends; less is for a report.
func (j *Job) judge(views []view, now time.Time, awake *wakefulness, pardon time.Time, allowed time.Duration) (f *Failure, busy bool) {
	ends := allowed >= j.deadline
	age := func(r int) time.Duration { return now.Sub(views[r].seen) }
	for r := range views {
		v := &views[r]
		if silent := now.Sub(awake.excuse(v.seen)); r != 0 && !v.left && silent > allowed {
			return j.silent(v, r, silent), false
		}
	}
	waits := func(r int) bool { return views[r].beat.Call != "" || views[r].beat.Waits }
	first := -1
	for r := range views {
		if v := &views[r]; v.error != "" && (first < 0 || v.leaving.Before(views[first].leaving)) {
			first = r
		}
	}
	if first >= 0 && slices.ContainsFunc(views, func(v view) bool {
		b, last := &v.beat, &views[first].beat
		return v.error == "" && !v.left && (b.Call != "" && b.Calls > last.Calls || b.Waits && b.Begun > last.Begun)
	}) {
		return j.failed(&views[first], first), false
	}
	for r := range views {
		// A waiting rank has ended its phase, even if unreported.
		if b := &views[r].beat; !views[r].left && b.Busy != "" && !waits(r) && b.BusyLeft > age(r) {
			return nil, true
		}
	}
	if first >= 0 && ends && now.Sub(awake.excuse(latest(views[first].leaving, pardon))) > j.closeWithin() {
		return j.failed(&views[first], first), false
	}
	var waiting []int
	large := false // an exchange takes longer
	for w := range views {
		b := &views[w].beat
		if views[w].left || views[w].error != "" || !waits(w) {
			continue
		}
		waited, limit := b.ExchangeFor, allowed
		// v has the result that w waits for.
		v := slices.IndexFunc(views, func(v view) bool { return v.left || v.beat.passed(b) })
		if b.Call != "" {
			waited = b.CallFor
			if ends && v < 0 {
				limit = max(b.CallLimit, allowed)
			}
		}
		from := awake.excuse(latest(now.Add(-waited-age(w)), pardon))
		if now.Sub(from) <= limit {
			continue
		}
		var behind []int
		for x := range views {
			if !views[x].left && !waits(x) && !views[x].beat.reached(b) {
				behind = append(behind, x)
			}
		}
		switch {
		case len(behind) > 0:
			return j.stuck(views, now, awake, w, behind, allowed), false
		case slices.ContainsFunc(views, func(v view) bool { return !v.left && now.Sub(v.seen) > 2*beatEvery }):
			continue // it may be stopped, and its wait over
		case first >= 0:
			return j.failed(&views[first], first), false
		case b.Call == "" && now.Sub(from) <= limit+time.Duration(float64(b.Bytes)/slowest*1e9):
			large = true
			continue
		case v >= 0:
			return j.failure(ExitLost, w, *b, age(w), fmt.Sprintf("%s waits %s for a result that %s has: the network link to it does not respond",
				j.who(w), b.sentence(age(w)), j.who(v))), false
		}
		waiting = append(waiting, w)
	}
	// No rank has a result that these wait for. They may wait for a later rank.
	if len(waiting) == 0 || large || slices.ContainsFunc(views, func(v view) bool { return v.beat.Call == "" && !v.beat.Waits }) {
		return nil, false
	}
	w := waiting[0]
	apart := []int{w}
	for x := range views {
		if !views[x].beat.reached(&views[w].beat) {
			apart = append(apart, x)
		}
	}
	if len(apart) > 1 {
		return j.disagree(views, now, apart), false
	}
	return j.failure(ExitLost, w, views[w].beat, age(w), fmt.Sprintf("%s waits %s, and no rank is late: the network link to it or to another rank, or an MPI library, does not respond",
		j.who(w), views[w].beat.sentence(age(w)))), false
}

func (j *Job) reportTo(w io.Writer, f *Failure) {
	limit := j.deadline.String()
	if j.closeWithin() > j.deadline {
		limit += fmt.Sprintf(", in Job.Close for %v", j.closeWithin())
	}
	fmt.Fprintf(w, "lazo: %s. %s ends if this lasts for %s ($%s)\n", strings.TrimPrefix(f.Text, j.ended()), j.named(), limit, variableDeadline)
}

func (j *Job) failed(v *view, r int) *Failure {
	return j.failure(ExitFailed, r, v.beat, 0, fmt.Sprintf("%s failed at step %d: %s", j.who(r), v.beat.Step, v.error))
}

func (j *Job) silent(v *view, r int, since time.Duration) *Failure {
	return j.failure(ExitLost, r, v.beat, since, fmt.Sprintf("%s gives no sign of life for %v: its process is stopped, or its host or the link to it is down. Its last heartbeat was %s",
		j.who(r), round(since), v.beat.sentence(0)))
}

func (j *Job) stuck(views []view, now time.Time, awake *wakefulness, w int, behind []int, allowed time.Duration) *Failure {
	age := func(r int) time.Duration { return now.Sub(views[r].seen) }
	first := behind[0]
	for _, r := range behind {
		if silent := now.Sub(awake.excuse(views[r].seen)); r != 0 && silent > tooLong { // the others were in their call before
			return j.silent(&views[r], r, silent)
		}
	}
	text := fmt.Sprintf("%s is stuck %s. %s waits for it %s", j.who(first), views[first].beat.sentence(age(first)), j.who(w), views[w].beat.sentence(age(w)))
	if len(behind) > 1 {
		text += fmt.Sprintf(" (and for ranks %s)", list(behind[1:]))
	}
	if allowed >= j.deadline {
		text += fmt.Sprintf(", longer than the deadline of %v", j.deadline)
	}
	if b := views[first].beat; b.Busy != "" {
		text += fmt.Sprintf("; the limit that it set for %q has passed", b.Busy)
	}
	return j.failure(ExitStuck, first, views[first].beat, age(first), text)
}

func (j *Job) disagree(views []view, now time.Time, ranks []int) *Failure {
	slices.Sort(ranks)
	var parts []string
	for _, r := range ranks[:min(len(ranks), 4)] {
		parts = append(parts, fmt.Sprintf("%s waits %s", j.who(r), views[r].beat.sentence(now.Sub(views[r].seen))))
	}
	r := ranks[len(ranks)-1]
	return j.failure(ExitDisagree, r, views[r].beat, now.Sub(views[r].seen), "ranks wait for each other at different places, so they do not run the same program: "+strings.Join(parts, "; "))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func list(ranks []int) string {
	var parts []string
	for i, r := range ranks {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("… %d in all", len(ranks)))
			break
		}
		parts = append(parts, fmt.Sprint(r))
	}
	return strings.Join(parts, ", ")
}

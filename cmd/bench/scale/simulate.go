package main

import "container/heap"

// a rank's step; -1: none
type exchange struct {
	to, from int
	bytes    float64
}

// schedule returns false after a rank's last step.
type schedule func(rank, step int) (exchange, bool)

type network struct {
	ranks int
	// link returns a message's cost and port. A port sends one message at a time.
	link  func(from, to int) (l link, port int)
	ports int
}

func flat(ranks int, l link) network {
	return network{ranks: ranks, ports: ranks, link: func(from, _ int) (link, int) { return l, from }}
}

// a port per rank within a host, and one per host to others
func hosts(count, each int, within, between link) network {
	n := count * each
	return network{ranks: n, ports: n + count, link: func(from, to int) (link, int) {
		if from/each == to/each {
			return within, from
		}
		return between, n + from/each
	}}
}

type turn struct {
	at   float64
	rank int
}

type turns []turn

func (t turns) Len() int { return len(t) }
func (t turns) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].rank < t[j].rank
}
func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)   { *t = append(*t, x.(turn)) }
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// simulate returns when each rank is done, or -1 if it waits forever. A nil start is 0.
func simulate(net network, s schedule, start []float64) (done []float64) {
	type pair struct{ from, to int }
	var ready turns
	free := make([]float64, net.ports)
	step := make([]int, net.ranks)
	sent := make([]bool, net.ranks)
	waits := make([]float64, net.ranks)
	arrived := map[pair][]float64{}
	done = make([]float64, net.ranks)
	for r := range net.ranks {
		done[r], waits[r] = -1, -1
		at := 0.0
		if start != nil {
			at = start[r]
		}
		heap.Push(&ready, turn{at, r})
	}
	for ready.Len() > 0 {
		now := heap.Pop(&ready).(turn)
		r := now.rank
		e, more := s(r, step[r])
		if !more {
			done[r] = now.at
			continue
		}
		if e.to >= 0 && !sent[r] {
			l, port := net.link(r, e.to)
			free[port] = max(free[port], now.at) + e.bytes/l.bandwidth
			p := pair{r, e.to}
			arrived[p] = append(arrived[p], free[port]+l.latency)
			if o, _ := s(e.to, step[e.to]); waits[e.to] >= 0 && o.from == r {
				heap.Push(&ready, turn{waits[e.to], e.to})
				waits[e.to] = -1
			}
		}
		sent[r] = true
		at := now.at
		if e.from >= 0 {
			p := pair{e.from, r}
			if len(arrived[p]) == 0 {
				waits[r] = now.at
				continue
			}
			at = max(at, arrived[p][0])
			arrived[p] = arrived[p][1:]
		}
		step[r]++
		sent[r] = false
		heap.Push(&ready, turn{at, r})
	}
	return done
}

func ringSchedule(n int, bytes float64) schedule {
	return func(rank, step int) (exchange, bool) {
		return exchange{(rank + 1) % n, (rank + n - 1) % n, bytes / float64(n)}, step < 2*(n-1)
	}
}

func doublingSchedule(n int, bytes float64) schedule {
	rounds, _ := rounds(n)
	p := 1 << rounds
	return func(rank, step int) (exchange, bool) {
		last := step == rounds+1
		switch partner := rank - p; {
		case rank >= p && step == 0:
			return exchange{partner, -1, bytes}, true
		case rank >= p:
			return exchange{-1, partner, bytes}, step == 1
		case step == 0 || last:
			e := exchange{-1, -1, bytes}
			if rank+p < n && last {
				e.to = rank + p
			} else if rank+p < n {
				e.from = rank + p
			}
			return e, true
		}
		peer := rank ^ 1<<(step-1)
		return exchange{peer, peer, bytes}, step <= rounds
	}
}

// as treeSchedule, for a power of two of ranks
func halvingSchedule(n int, bytes float64) schedule {
	rounds, _ := rounds(n)
	return func(rank, step int) (exchange, bool) {
		at := step
		if step >= rounds {
			at = 2*rounds - 1 - step
		}
		if at < 0 {
			return exchange{}, false
		}
		peer := rank ^ n>>(at+1)
		return exchange{peer, peer, bytes / float64(int(2)<<at)}, true
	}
}

func treeSchedule(n int, bytes float64) schedule {
	rounds, _ := rounds(n)
	return func(rank, step int) (exchange, bool) {
		at, up := step, true
		if step >= rounds {
			at, up = 2*rounds-1-step, false
		}
		if at < 0 {
			return exchange{}, false
		}
		e := exchange{-1, -1, bytes}
		switch span := 2 << at; rank % span {
		case 0:
			e.from = rank + span/2
			if !up {
				e.from, e.to = -1, rank+span/2
			}
		case span / 2:
			e.to = rank - span/2
			if !up {
				e.to, e.from = -1, rank-span/2
			}
		}
		return e, true
	}
}

func hostsSchedule(count, each int, bytes float64) schedule {
	part := bytes / float64(each)
	return func(rank, step int) (exchange, bool) {
		host, local := rank/each, rank%each
		inside := exchange{host*each + (local+1)%each, host*each + (local+each-1)%each, part}
		between := 2 * (count - 1)
		switch {
		case step < each-1:
			return inside, true
		case step < each-1+between:
			return exchange{(host+1)%count*each + local, (host+count-1)%count*each + local, part / float64(count)}, true
		}
		return inside, step < 2*(each-1)+between
	}
}

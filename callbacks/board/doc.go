// Package board serves a page that follows this process's trainings: curves, throughput, waits for data, memory,
// samples, log lines and ends. With its token, the page stops, pauses and saves them and changes the learning rate.
//
// docs/monitoring.md describes the page. `lazo board DIR` shows recorded runs.
package board

// Package loop runs training loops: schedules decide when tasks, callbacks and evaluations run; a history keeps the
// logs. State (S) and batch (B) have any types.
//
// [Loop.Run] makes one iteration for each batch: it counts the step, runs the due tasks and changes
// ([Callback].Changes), adds the logs to the history, and calls the other due callbacks.
//
// The logs of an [Evaluation], a loop on other data, become one row of the outer loop. A [Stepper] can make several
// steps at once. The processes of a [Job] agree on each decision.
package loop

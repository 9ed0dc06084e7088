// Package store keeps the values of a state of package managed: the buffers that a strategy has of them, who may use
// them next to whom, and what outlives a change of them.
//
//   - [Store] is all of it. Its embedded [Access] says which gate guards what.
//   - A [Pin] keeps one value for a reader while the state gets another, as a view or a checkpoint needs it.
//   - A [Last] is the run that may still go on; [Remote] is an array that a run reported and that nobody has read yet.
//   - [Given] are values for variables to come; [Store.Adopt] gives new variables these or draws them.
package store

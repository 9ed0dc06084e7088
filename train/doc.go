// Package train has Ciclo's three loops as thin forms over package loop: [Loop] trains and evaluates at each epoch's
// end, [Test] is an evaluation with hooks, [Predict] returns outputs. [Of], [TestOf] and [PredictOf] make the loops of
// a state's methods. For Jaxloop's inner and outer loops see docs/from-jaxloop.md.
//
// # Hooks
//
// A loop calls the functions of each place in the order of its [Hooks]. A hook can be an object's method value, or
// the state's method by [Method].
//
// # Ends of a run
//
// A run's end determines which hooks are called ("all" at each of their places). A cancelled context ends a run between
// two iterations or in a test, an error where it occurs.
//
//	hook                                   data ended  until reached  stopped  cancelled   failed      no data
//	Begin                                  once        once           once     until then  until then  never
//	BatchBegin, AfterStep, BatchEnd        all         all            all      until then  until then  never
//	AfterReset, EpochEnd, those of a test  all         all            all      until then  until then  never
//	AfterReset, EpochEnd without Epoch     once        once           once     never       never       never
//	End                                    once        once           once     never       never       never
//
// Work for every end belongs in the End of a [loop.Attendant]. A run that [loop.Until] ends before its first
// iteration calls no hook.
package train

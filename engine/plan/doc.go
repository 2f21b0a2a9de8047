// Package plan finds the data files of a snapshot and the delete files that
// apply to each.
//
//	manifest list ──> delete manifests ──> delete index (by path, by partition, global; by sequence)
//	              └─> data manifests   ──> data entries stream past the index ──> Task, Task, ...
//
// Tasks come in the order of the manifest list and then of the manifest's
// entries. Delete entries are held while the plan runs and charged to its
// memory pool; data entries are not held.
package plan

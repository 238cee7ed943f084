package core

import "time"

// Intake is what was asked for: the assignment that holds, and what has come since and is not taken yet.
type Intake struct {
	Assigned      *Version
	Text          string        `json:"assignment,omitempty"`
	NodeUID       string        `json:"nodeUID,omitempty"`
	Retry         string        `json:"retry,omitempty"`
	Pending       *Assigned     // rule 1: of the assignments that arrive in the meantime the newest
	PendingNumber int           // tells one Pending from the next
	PendingOver   string        // content of the node's own file that its layers were laid over again
	Edit          *Assigned     // of what is pending, or assigned: it waits for quiet, and is as if it had not been heard of
	EditHeard     time.Duration // when Edit came
	SettlesAt     time.Duration // when Edit is taken
	SettlesBy     time.Duration // whatever comes in its place until then
	NextEdit      time.Duration // no edit is taken sooner
	ApplyAt       time.Duration // an edit waits for its turn until then
	ApplyAtWall   time.Time
	Reset         *Cleared // a removal that is not applied yet
	Sync          *Problem // why the newest assignment cannot be followed
	Lost          bool     // the Node was re-created without its assignment
	NodeGone      bool     // it does not exist: nothing that it asked for is made
	Observed      *string  // the assignment that the report speaks of; nil = not seen yet
	Shadowed      bool
	Today         Today // the layers of what is assigned, over the node's own file as it is now
}

// mergeIsDue reports whether the node's own file has changed since the layers of the assigned configuration were merged with it.
func (in *Intake) mergeIsDue(local string) bool {
	return in.Assigned != nil && in.Assigned.Base != "" && in.Assigned.Base != local && in.Today.Of != local
}

// pendingIsStale reports whether what waits lies over an older file of the node than the present one. It is merged again before anything is
// reported or done about it, because a start would take the present file.
func (in *Intake) pendingIsStale(local string) bool {
	v := in.Pending.Version
	return v.Base != "" && v.Base != local && in.PendingOver != local
}

// learnMergeFails notes whether the node is at fault with today's merge.
func (in *Intake) learnMergeFails(p Proof) {
	if v := in.Today.Version; v != nil && p.Content == v.Content {
		in.Today.Failing = p.blamesEnvironment()
	}
}

// goal returns the newest configuration that was asked for, whatever speaks against it.
func (in *Intake) goal() *Version {
	switch {
	case in.Pending != nil:
		return &in.Pending.Version
	case in.Reset != nil:
		return nil
	}
	return in.Assigned
}

// settles reports whether an assignment is an edit, which waits for quiet: it changes in place what is pending, or else what is assigned.
// Another assignment waits for nothing.
func (in *Intake) settles(settings Settings, e Assigned) bool {
	if settings.EditSpread <= 0 {
		return false
	}
	if p := in.Pending; p != nil {
		return e.Text == p.Text && e.NodeUID == p.NodeUID
	}
	return in.Assigned != nil && e.Text == in.Text && e.NodeUID == in.NodeUID
}

func (in *Intake) remembersAssignment() bool {
	return in.Assigned != nil || in.Text != ""
}

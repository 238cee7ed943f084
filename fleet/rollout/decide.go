package rollout

// Decide says what to do. It is pure, and decides for all pools at once, because a node may leave one pool and come into another, and because
// budgets are shared. Each of its six movements takes what those before it have found out, and returns what it adds.
func Decide(w World) Plan {
	fleet := belong(&w, defaultRules())
	aims := render(&w, &fleet)
	crews := classify(&w, &fleet, aims)
	courses := judge(&w, &fleet, aims, crews)
	chosen := choose(&w, &fleet, courses)
	return report(&w, &fleet, &chosen)
}

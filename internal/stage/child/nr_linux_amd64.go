package child

const (
	sysTimerfdCreate  = 283
	sysTimerfdSettime = 286
	sysSignalfd4      = 289
	sysExecveat       = 322
	sysSetns          = 308
	sysMemfdCreate    = 319
	sysGetrandom      = 318
)

/** Runs one trial in a thread of its own. */
import { serve } from '../../threads/serve.js';
import { openTrial } from './trial-run.js';

serve(openTrial);

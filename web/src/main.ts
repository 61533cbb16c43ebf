import './style.css';
import { render } from 'lit';

import { Lab } from './lab/app.ts';
import { page } from './lab/page.ts';
import { key } from './lab/transport.ts';
import { offline } from '#offline';

const lab = new Lab(document.getElementById('lab')!, (lab) => render(page(lab), lab.root));
addEventListener('keydown', (event) => key(lab, event));
// Tests and consoles reach the laboratory here.
Object.assign(window, { lab });
void lab.begin();
offline();
